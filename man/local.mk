# Build rules of man/: one page for each command, and some more.
#
# A page is written by hand but for its options: those come from the option tables. A page that is
# missing is missed by "make check", not here.
EXTRA_DIST += $(manual_sources) tools/generate-manual.awk tests/check/manual
manual_sources = $(wildcard $(srcdir)/man/*.scd)
manual_generator = $(srcdir)/tools/generate-manual.awk

manual_targets =
if !SANITIZERS
manual_targets += manual/described
if HAVE_SCDOC
manual_targets += manual/stamp
endif
TESTS += tests/check/manual
endif
all-local: $(manual_targets)

# What the commands say about themselves; it changes only when that does.
manual/described: openshell-commands$(EXEEXT)
	$(AM_V_GEN)$(MKDIR_P) manual && ./openshell-commands --describe >manual/commands.new && \
	{ cmp -s manual/commands.new manual/commands.tsv || \
	cp manual/commands.new manual/commands.tsv; } && rm manual/commands.new && touch $@
manual/commands.tsv: manual/described
	@:

manual/stamp: $(manual_sources) $(manual_generator) manual/commands.tsv
	$(AM_V_GEN)rm -rf manual/man? && for source in $(manual_sources); do \
		page=$${source##*/} && page=$${page%.scd} && directory=manual/man$${page##*.} && \
		$(MKDIR_P) $$directory && \
		$(AWK) -v page=$$page -v version=$(PACKAGE_VERSION) -v libexec=$(pkglibexecdir) \
			-f $(manual_generator) manual/commands.tsv $$source >$$directory/$$page.scd && \
		$(SCDOC) <$$directory/$$page.scd >$$directory/$$page && \
		rm $$directory/$$page.scd || { echo "$$source: cannot be made" >&2; exit 1; }; \
	done && touch $@

install-data-hook: install-manual
install-manual:
	for page in manual/man?/*; do \
		test -f $$page || continue; \
		section=$${page##*.} && $(MKDIR_P) "$(DESTDIR)$(mandir)/man$$section" && \
		$(INSTALL_DATA) $$page "$(DESTDIR)$(mandir)/man$$section/" || exit 1; \
	done
uninstall-hook: uninstall-manual
uninstall-manual:
	for page in manual/man?/*; do \
		rm -f "$(DESTDIR)$(mandir)/man$${page##*.}/$${page##*/}" || exit 1; \
	done
clean-local: clean-manual
clean-manual:
	rm -rf manual
.PHONY: install-manual uninstall-manual clean-manual
