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
	cli/gateway/add.c \
	cli/gateway/describe.c cli/gateway/describe.h \
	cli/gateway/info.c \
	cli/gateway/list.c \
	cli/gateway/remove.c \
	cli/gateway/select.c \
	cli/gateway/start.c \
	cli/gateway/status.c \
	cli/gateway/stop.c \
	cli/logs.c \
	cli/sandbox/create.c \
	cli/sandbox/delete.c \
	cli/sandbox/download.c \
	cli/sandbox/exec.c \
	cli/sandbox/get.c \
	cli/sandbox/list.c \
	cli/sandbox/start.c \
	cli/sandbox/stop.c \
	cli/sandbox/upload.c \
	cli/status.c \
	cli/whoami.c
nodist_openshell_commands_SOURCES = \
	cli/command_list.c cli/command_table.c cli/completion/scripts.c
openshell_commands_LDADD = \
	libconnection.a libclient.a $(RPC_LIBS) $(JANSSON_STATIC) $(ARCHIVE_LIBS)
$(openshell_commands_OBJECTS): | proto/tables.stamp
endif
