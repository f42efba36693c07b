package policy

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// options lists the options that may follow a program's name. Abbreviations are not on
// the list, although the program may accept them.
type options struct {
	long  map[string]form
	short *regexp.Regexp
}

// form is how an option may be written.
type form int

const (
	alone  form = 1 << iota // --name
	valued                  // --name=value
)

// optionList is the text of options. It is read when it is first needed.
type optionList struct {
	short string // a pattern, which must match the whole word
	// long has "--name", "--name=value", "--name=" for any value, and "--name[=]" for any
	// value or none.
	long string

	once sync.Once
	read options
}

func (l *optionList) options() options {
	l.once.Do(func() {
		o := options{long: map[string]form{}, short: regexp.MustCompile(`^(?:` + l.short + `)$`)}
		for spec := range strings.FieldsSeq(l.long) {
			f := alone
			name, optional := strings.CutSuffix(spec, "[=]")
			if optional {
				f = alone | valued
			} else if n, only := strings.CutSuffix(spec, "="); only {
				name, f = n, valued
			}
			o.long[name] |= f
		}
		l.read = o
	})
	return l.read
}

// cover reports whether every word that begins with a dash is on the list. The program
// may read such a word as an option, as the value of another, or as an operand. cover does
// not try to find out which, so each must be harmless as an option.
func (l *optionList) cover(words []Word) bool {
	o := l.options()
	return !slices.ContainsFunc(words, func(w Word) bool {
		return strings.HasPrefix(w.Text, "-") && !o.has(w.Text)
	})
}

func (o options) has(text string) bool {
	name, _, hasValue := strings.Cut(text, "=")
	return o.long[text]&alone != 0 ||
		hasValue && o.long[name]&valued != 0 ||
		!strings.HasPrefix(text, "--") && o.short.MatchString(text)
}

// findOptions are the tests of find and the actions that print. The numbers are values,
// as in -mtime -7.
var findOptions = optionList{short: `-[HLPE]|-[0-9]+[a-zA-Z]*|-newer[aBcm][aBcmt]`, long: `
	-a -amin -and -anewer -atime -cmin -cnewer -ctime -d -daystart -depth -empty -executable -false -files0-from -follow
	-fstype -gid -group -ignore_readdir_race -ilname -iname -inum -ipath -iregex -iwholename -links -lname -ls -maxdepth
	-mindepth -mmin -mount -mtime -name -newer -nogroup -noignore_readdir_race -noleaf -not -nouser -nowarn -o -or -path
	-perm -print -print0 -printf -prune -quit -readable -regex -regextype -samefile -size -true -type -uid -used -user
	-warn -wholename -writable -xdev -xtype`}

// ripgrepOptions are the options of rg except those that start a program: --pre,
// --hostname-bin, and -z and --search-zip for compressed files.
var ripgrepOptions = optionList{short: `-[.0FHILNPSUVabchilnopqsuvwx]*(?:[ABCEMTdefgjmrt].*)?`, long: `
	-- --after-context[=] --auto-hybrid-regex --before-context[=] --binary --block-buffered --byte-offset --case-sensitive
	--color[=] --colors[=] --column --context[=] --context-separator[=] --count --count-matches --crlf --debug
	--dfa-size-limit[=] --encoding[=] --engine[=] --field-context-separator[=] --field-match-separator[=] --file[=] --files
	--files-with-matches --files-without-match --fixed-strings --follow --glob[=] --glob-case-insensitive --heading --help
	--hidden --hyperlink-format[=] --iglob[=] --ignore-case --ignore-file[=] --ignore-file-case-insensitive
	--include-zero --invert-match --json --line-buffered --line-number --line-regexp --max-columns[=]
	--max-columns-preview --max-count[=] --max-depth[=] --max-filesize[=] --mmap --multiline --multiline-dotall
	--no-binary --no-block-buffered --no-column --no-config --no-context-separator --no-crlf --no-encoding --no-filename
	--no-fixed-strings --no-follow --no-glob-case-insensitive --no-heading --no-hidden --no-ignore --no-ignore-dot
	--no-ignore-exclude --no-ignore-files --no-ignore-global --no-ignore-messages --no-ignore-parent --no-ignore-vcs
	--no-invert-match --no-json --no-line-buffered --no-line-number --no-max-columns-preview --no-messages --no-mmap
	--no-multiline --no-multiline-dotall --no-one-file-system --no-pcre2 --no-pcre2-unicode --no-pre --no-require-git
	--no-search-zip --no-sort-files --no-stats --no-text --no-trim --no-unicode --null --null-data --one-file-system
	--only-matching --passthru --path-separator[=] --pcre2 --pcre2-version --pretty --quiet --regex-size-limit[=]
	--regexp[=] --replace[=] --require-git --smart-case --sort[=] --sort-files --sortr[=] --stats --stop-on-nonmatch
	--text --threads[=] --trace --trim --type[=] --type-add[=] --type-clear[=] --type-list --type-not[=] --unicode
	--unrestricted --version --vimgrep --with-filename --word-regexp`}
