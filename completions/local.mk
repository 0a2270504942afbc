# Build rules of completions/: what makes the shells complete.
#
# The scripts here are written by hand; the tables that they read are printed by the commands
# themselves, from the list of commands and the option tables.
completion_templates = \
	$(srcdir)/completions/template.bash \
	$(srcdir)/completions/template.zsh \
	$(srcdir)/completions/template.fish
line_embedder = $(srcdir)/tools/embed-lines.awk
EXTRA_DIST += completions/template.bash completions/template.zsh completions/template.fish \
	tools/embed-lines.awk

cli/completion/scripts.c: $(completion_templates) $(line_embedder)
	$(AM_V_GEN)$(MKDIR_P) cli/completion && \
	$(AWK) -f $(line_embedder) $(completion_templates) >$@.new && mv $@.new $@

if !SANITIZERS
bashcompletiondir = $(datadir)/bash-completion/completions
zshcompletiondir = $(datadir)/zsh/site-functions
fishcompletiondir = $(datadir)/fish/vendor_completions.d
nodist_bashcompletion_DATA = completions/openshell
nodist_zshcompletion_DATA = completions/_openshell
nodist_fishcompletion_DATA = completions/openshell.fish
CLEANFILES += completions/openshell completions/_openshell completions/openshell.fish

print_completions = $(AM_V_GEN)$(MKDIR_P) completions && \
	./openshell-commands openshell-completions
completions/openshell: openshell-commands$(EXEEXT)
	$(print_completions) bash >$@.new && mv $@.new $@
completions/_openshell: openshell-commands$(EXEEXT)
	$(print_completions) zsh >$@.new && mv $@.new $@
completions/openshell.fish: openshell-commands$(EXEEXT)
	$(print_completions) fish >$@.new && mv $@.new $@
endif
