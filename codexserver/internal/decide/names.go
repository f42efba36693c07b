package decide

import (
	"strings"
	"unicode"
)

// Names returns what may name a program in a command, each once: the programs of plain commands, as they are written, and
// each word of its texts without a folder, with and without quotes, also behind an option or an assignment.
func Names(argv []string) (names []string) {
	if len(argv) == 0 {
		return nil
	}
	known := map[string]bool{"": true}
	add := func(name string) {
		if !known[name] {
			known[name], names = true, append(names, name)
		}
	}
	commands, _ := Commands(argv)
	for _, words := range append([][]string{argv}, commands...) {
		add(words[0])
	}
	for _, text := range argv {
		for _, reading := range []string{text, unquote.Replace(text)} {
			for _, breaks := range []string{"", "\\$=,:#!*?~^%@+[]{}"} { // the latter may be a part of a name
				isBreak := func(r rune) bool {
					return unicode.IsSpace(r) ||
						strings.ContainsRune("\"'`;&|<>()"+breaks, r)
				}
				for word := range strings.FieldsFuncSeq(reading, isBreak) {
					if strings.ContainsAny(word, `/\`) { // a path leads past the PATH
						continue
					}
					add(word)
					if option := strings.TrimLeft(word, "-"); option != word { // ${X:-git}, env -Sgit
						add(option)
						add(option[min(len(option), 1):])
					}
				}
			}
		}
	}
	return names
}

// unquote removes what a shell does, which joins the parts of a word.
var unquote = strings.NewReplacer("\\\n", "", "$'", "", `$"`, "", "'", "", `"`, "", "\\", "")
