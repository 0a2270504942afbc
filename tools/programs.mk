# Two files go by many names: openshell-commands and openshell-daemons.
command_names = `$(AWK) -v mode=names -f $(command_generator) $(command_list)`

# The build tree's libexec directory, for OPENSHELL_EXEC_PATH: everything under the name it is
# installed by.
all-local: exec-path/stamp
exec-path/stamp: $(bin_PROGRAMS) $(pkglibexec_PROGRAMS) $(command_list) $(command_generator)
	$(AM_V_GEN)$(MKDIR_P) exec-path && \
	for program in $(bin_PROGRAMS) $(pkglibexec_PROGRAMS); do \
		ln -sf "../$$program" "exec-path/$${program##*/}" || exit 1; \
	done && \
	for name in $(command_names); do \
		ln -sf ../openshell-commands "exec-path/$$name" || exit 1; \
	done && \
	for name in $(daemon_names); do \
		ln -sf ../openshell-daemons "exec-path/$$name" || exit 1; \
	done && \
	ln -sfn ../manual exec-path/manual && \
	touch $@
clean-local: clean-exec-path
clean-exec-path:
	rm -rf exec-path

# Links where the file system has them.
link_program = link() { rm -f "$$2" && \
	{ ln "$$1" "$$2" || ln -s "$$1" "$$2" || cp -p "$$1" "$$2"; } || exit 1; }
install-exec-hook: install-program-links
install-program-links:
	names=$(command_names) && cd "$(DESTDIR)$(pkglibexecdir)" && $(link_program) && \
	for name in $$names; do link openshell-commands "$$name"; done && \
	for name in $(daemon_names); do link openshell-daemons "$$name"; done
uninstall-hook: uninstall-program-links
uninstall-program-links:
	for name in $(command_names) $(daemon_names); do \
		rm -f "$(DESTDIR)$(pkglibexecdir)/$$name"; \
	done
.PHONY: clean-exec-path install-program-links uninstall-program-links
