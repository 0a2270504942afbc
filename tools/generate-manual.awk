# Makes the source of a manual page whole: generate-manual.awk COMMANDS PAGE, where COMMANDS is what
# "openshell-commands --describe" prints, with the variables page ("openshell-sandbox-get.1"),
# version and libexec. A line of PAGE that is one of these is replaced:
#   @OPTIONS@         the options of the page's command
#   @GLOBAL-OPTIONS@  those of every command
#   @COMMANDS@        the commands, by group

BEGIN { FS = "\t" }

# Text that scdoc takes as it stands.
function plain(text)
{
    gsub(/[\\*_`#]/, "\\\\&", text)
    return text
}

# `text` with `value` in every place of `name`.
function put(text, name, value,    at)
{
    at = index(text, name)
    return at == 0 ? text : substr(text, 1, at - 1) value put(substr(text, at + length(name)), name, value)
}

function sentence(text)
{
    return text != "" && text !~ /[.:;]$/ ? text "." : text
}

# "--a, --b" for the names of options that are shown, of those given.
function shown_options(names, own,    list, count, i, text)
{
    count = split(names, list, " ")
    for (i = 1; i <= count; i++)
        if (list[i] == "--")
            text = text (text == "" ? "" : ", ") "a program after *--*"
        else if (!((own, list[i]) in hidden))
            text = text (text == "" ? "" : ", ") "*--" list[i] "*"
    return text
}

function add_option(    own, head, text, conflicts, range)
{
    own = $2 " " $3
    head = ($5 != "-" ? "*-" $5 "*, " : "") "*--" $4 "*"
    if ($6 != "-")
        head = head " _" plain($6) "_"
    text = sentence(plain($15))
    if ($11 != "-") {
        gsub(/ /, "*, *", $11)
        text = text " One of *" $11 "*."
    }
    if ($12 != "-") {
        split($12, range, " ")
        text = text " A whole number from " range[1] " to " range[2] "."
    }
    if ($7 == "yes" && $6 != "-")
        text = text " May be given more than once."
    if ($9 != "-")
        text = text " Default: " plain($9) "."
    if ($13 != "-" && (conflicts = shown_options($13, own)) != "")
        text = text " Not together with " conflicts "."
    if ($14 != "-")
        text = text " Needs *--" $14 "*."
    if ($10 != "-")
        text = text " Variable: *" plain($10) "*."
    options[own] = options[own] head "\n\t" text "\n\n"
}

FNR == 1 { file++ }

file == 1 && $1 == "group" {
    order[++groups] = $2
    summary[$2] = $4
}

file == 1 && $1 == "command" {
    name = $2 == "-" ? $3 : $2 "-" $3
    if (page == "openshell-" name ".1")
        command = $2 " " $3
    if ($4 != "hidden") {
        verbs[$2] = verbs[$2] "*openshell-" name "*(1)\n\t" plain($9) ".\n\n"
    }
}

file == 1 && $1 == "option" {
    rows[++row_count] = $0
    if ($8 == "yes")
        hidden[$2 " " $3, $4] = 1
}

file == 1 { next }

FNR == 1 {
    line = $0
    for (i = 1; i <= row_count; i++) {
        $0 = rows[i]
        if ($8 != "yes")
            add_option()
    }
    $0 = line
}

$0 == "@OPTIONS@" {
    if (command == "") {
        print FILENAME ": no command has this page" >"/dev/stderr"
        exit 1
    }
    printf "%s", options[command]
    print (options[command] == "" ? "None of its own. " : "") \
        "The options of every command, as *--gateway* and *--workspace*, are in *openshell*(1)."
    next
}

$0 == "@GLOBAL-OPTIONS@" {
    printf "%s", options["- -"]
    next
}

$0 == "@COMMANDS@" {
    for (i = 1; i <= groups; i++)
        printf "## %s: %s\n\n%s", order[i], plain(summary[order[i]]), verbs[order[i]]
    printf "## By themselves\n\n%s", verbs["-"]
    next
}

# Between ``` nothing is markup, and a backslash is one.
/^```/ { literal = !literal }

{
    $0 = put($0, "@VERSION@", literal ? version : plain(version))
    print put($0, "@LIBEXEC@", literal ? libexec : plain(libexec))
}
