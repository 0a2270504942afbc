# Build rules of cli/: the front-end, and one multi-call binary for the commands.

# The one list of commands makes help, dispatch and the names that are installed.
command_list = $(srcdir)/cli/command-list.txt
command_generator = $(srcdir)/tools/generate-command-list.awk
EXTRA_DIST += cli/command-list.txt tools/generate-command-list.awk
BUILT_SOURCES += cli/command_list.c cli/command_table.c cli/completion/scripts.c
CLEANFILES += cli/command_list.c cli/command_table.c cli/completion/scripts.c

cli/command_list.c: $(command_list) $(command_generator)
	$(AM_V_GEN)$(MKDIR_P) cli && \
	$(AWK) -v mode=list -f $(command_generator) $(command_list) >$@.new && mv $@.new $@
cli/command_table.c: $(command_list) $(command_generator)
	$(AM_V_GEN)$(MKDIR_P) cli && \
	$(AWK) -v mode=table -f $(command_generator) $(command_list) >$@.new && mv $@.new $@

if !SANITIZERS
# Fully static: it starts in well under a millisecond and needs nothing of the system.
bin_PROGRAMS += openshell
openshell_SOURCES = cli/openshell.c cli/command_list.h
nodist_openshell_SOURCES = cli/command_list.c
openshell_LDFLAGS = $(AM_LDFLAGS) -static
openshell_LDADD = libclient.a libbase.a

# One binary for all commands, which goes by many names. Everything but the C library is inside:
# shared gRPC would cost ten times the start.
pkglibexec_PROGRAMS += openshell-commands
openshell_commands_SOURCES = \
	cli/command_list.h \
	cli/command_table.h \
	cli/commands.c \
	cli/complete.c \
	cli/completion/bash.c \
	cli/completion/completion.c cli/completion/completion.h \
	cli/completion/fish.c \
	cli/completion/zsh.c \
	cli/completions.c \
	cli/describe.c cli/describe.h \
	cli/gateway/list.c \
	cli/gateway/start.c \
	cli/gateway/status.c \
	cli/gateway/stop.c \
	cli/logs.c \
	cli/sandbox/create.c \
	cli/sandbox/delete.c \
	cli/sandbox/exec.c \
	cli/sandbox/get.c \
	cli/sandbox/list.c \
	cli/sandbox/start.c \
	cli/sandbox/stop.c \
	cli/status.c \
	cli/whoami.c
nodist_openshell_commands_SOURCES = \
	cli/command_list.c cli/command_table.c cli/completion/scripts.c
openshell_commands_LDADD = libconnection.a libclient.a $(RPC_LIBS) $(JANSSON_STATIC)
$(openshell_commands_OBJECTS): | proto/tables.stamp
endif

# The build tree's libexec directory, for OPENSHELL_EXEC_PATH: everything under the name it is
# installed by.
command_names = `$(AWK) -v mode=names -f $(command_generator) $(command_list)`
all-local: exec-path/stamp
exec-path/stamp: $(bin_PROGRAMS) $(pkglibexec_PROGRAMS) $(command_list) $(command_generator)
	$(AM_V_GEN)$(MKDIR_P) exec-path && \
	for program in $(bin_PROGRAMS) $(pkglibexec_PROGRAMS); do \
		ln -sf "../$$program" "exec-path/$${program##*/}" || exit 1; \
	done && \
	for name in $(command_names); do \
		ln -sf ../openshell-commands "exec-path/$$name" || exit 1; \
	done && \
	ln -sfn ../manual exec-path/manual && \
	touch $@
clean-local: clean-exec-path
clean-exec-path:
	rm -rf exec-path

# One file under many names: links where the file system has them.
install-exec-hook: install-command-links
install-command-links:
	names=$(command_names) && cd "$(DESTDIR)$(pkglibexecdir)" && \
	for name in $$names; do \
		rm -f "$$name" && \
		{ ln openshell-commands "$$name" || ln -s openshell-commands "$$name" || \
		cp -p openshell-commands "$$name"; } || exit 1; \
	done
uninstall-hook: uninstall-command-links
uninstall-command-links:
	for name in $(command_names); do rm -f "$(DESTDIR)$(pkglibexecdir)/$$name"; done
.PHONY: clean-exec-path install-command-links uninstall-command-links
