# Makes C from cli/command-list.txt.
#   mode=list   the table of names (command_list.h)
#   mode=table  the table of implementations, in the same order
#   mode=names  the executables' names, one a line

function fail(text) {
    printf "%s:%d: %s\n", FILENAME, FNR, text > "/dev/stderr"
    failed = 1
    exit 1
}

function rest(first,    text, i) {
    text = $first
    for (i = first + 1; i <= NF; i++)
        text = text " " $i
    return text
}

/^#/ || NF == 0 { next }
/["\\]/ { fail("quotes and backslashes are not allowed") }

$1 == "group" && NF >= 4 {
    groups = groups sprintf("    {\"%s\", \"%s\", \"%s\"},\n", $2, $3, rest(4))
    known[$2] = 1
    next
}

$1 == "alias" && NF == 3 {
    aliases = aliases sprintf("    {\"%s\", \"%s\"},\n", $2, $3)
    next
}

$1 == "command" && NF >= 5 {
    if ($2 != "-" && !($2 in known))
        fail("the group '" $2 "' does not stand above")
    group = $2 == "-" ? "" : $2
    name = group == "" ? $3 : group "-" $3
    symbol = name
    gsub(/-/, "_", symbol)
    sub(/^_+/, "", symbol)
    class = $4 == "main" ? "COMMAND_MAIN" : $4 == "more" ? "COMMAND_MORE" : $4 == "hidden" ? "COMMAND_HIDDEN" : ""
    if (class == "")
        fail("the class '" $4 "' is not one of main, more, hidden")
    entries = entries sprintf("    {\"%s\", \"%s\", \"openshell-%s\", %s, \"%s\"},\n", group, $3, name, class, rest(5))
    externs = externs "extern const struct command command_" symbol ";\n"
    table = table "    &command_" symbol ",\n"
    names = names "openshell-" name "\n"
    next
}

{ fail("neither a group, an alias nor a command") }

END {
    if (failed)
        exit 1
    if (mode == "names") {
        printf "%s", names
    } else if (mode == "table") {
        print "/* Made from cli/command-list.txt. */"
        print "#include \"cli/command_table.h\"\n"
        printf "%s\nconst struct command *const command_table[] = {\n%s    NULL,\n};\n", externs, table
    } else {
        print "/* Made from cli/command-list.txt. */"
        print "#include \"cli/command_list.h\"\n"
        printf "const struct command_group command_groups[] = {\n%s    {NULL, NULL, NULL},\n};\n\n", groups
        printf "const struct command_alias command_aliases[] = {\n%s    {NULL, NULL},\n};\n\n", aliases
        printf "const struct command_entry command_entries[] = {\n%s    {NULL, NULL, NULL, COMMAND_HIDDEN, NULL},\n};\n", entries
    }
}
