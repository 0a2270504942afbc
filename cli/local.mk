# Build rules of cli/: the front-end, and one multi-call binary for the commands.

# The one list of commands makes help, dispatch and the names that are installed.
command_list = $(srcdir)/cli/command-list.txt
command_generator = $(srcdir)/tools/generate-command-list.awk
EXTRA_DIST += cli/command-list.txt tools/generate-command-list.awk
BUILT_SOURCES += cli/command_list.c cli/command_table.c
CLEANFILES += cli/command_list.c cli/command_table.c

cli/command_list.c: $(command_list) $(command_generator)
	$(AM_V_GEN)$(MKDIR_P) cli && \
	$(AWK) -v mode=list -f $(command_generator) $(command_list) >$@.new && mv $@.new $@
cli/command_table.c: $(command_list) $(command_generator)
	$(AM_V_GEN)$(MKDIR_P) cli && \
	$(AWK) -v mode=table -f $(command_generator) $(command_list) >$@.new && mv $@.new $@

# Fully static: it starts in well under a millisecond and needs nothing of the system.
bin_PROGRAMS += openshell
openshell_SOURCES = cli/openshell.c cli/command_list.h
nodist_openshell_SOURCES = cli/command_list.c
openshell_LDFLAGS = $(AM_LDFLAGS) -static
openshell_LDADD = libclient.a libbase.a
