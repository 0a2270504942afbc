# Makes a C array of the lines of each file: NAME is what stands between "template." and the end
# of the file's name, and the array is completion_script_NAME.

function finish()
{
    if (open)
        printf "    NULL,\n};\n"
}

BEGIN {
    print "/* Made from completions/. */"
    print "#include \"cli/completion/completion.h\""
}

FNR == 1 {
    finish()
    name = FILENAME
    sub(/^.*\./, "", name)
    printf "\nconst char *const completion_script_%s[] = {\n", name
    open = 1
}

{
    gsub(/\\/, "&&")
    gsub(/"/, "\\\"")
    gsub(/\t/, "\\t")
    printf "    \"%s\",\n", $0
}

END { finish() }
