package patch

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/internal/lazyregexp"
)

// Invocation is a command that applies a patch.
type Invocation struct {
	Text string // the patch
	Dir  string // the folder that its paths are relative to, absolute or relative to the command's folder
}

// Recognize finds the patch in a command that only applies one:
//
//	["apply_patch", PATCH]
//	[PATCH]
//	["bash", "-lc", "apply_patch <<'EOF'\nPATCH\nEOF"]
//	["bash", "-lc", "apply_patch 'PATCH'"]
//	["bash", "-lc", "cat <<'EOF' | apply_patch\nPATCH\nEOF"]
//	["bash", "-lc", "apply_patch \"$(cat <<'EOF'\nPATCH\nEOF\n)\""]
//	["bash", "-lc", "cd DIR && apply_patch <<'EOF'\nPATCH\nEOF"]
//	["bash", "-lc", "set -e; apply_patch <<'EOF'\nPATCH\nEOF"]
//
// The shell may also be sh or zsh, and have a path and options that change nothing here, such as -e. The program may
// also be applypatch or apply-patch. Such a command is not run as a program.
func Recognize(argv []string) (Invocation, bool) {
	last := len(argv) - 1
	switch {
	case last == 0 && isBare(argv[0]):
		return Invocation{Text: argv[0]}, true
	case last == 1 && slices.Contains([]string{"apply_patch", "applypatch", "apply-patch"}, argv[0]):
		return Invocation{Text: argv[1]}, true
	case last > 1 && slices.Contains([]string{"bash", "sh", "zsh"}, filepath.Base(argv[0])) &&
		readsScript.Get().MatchString(strings.Join(argv[1:last], " ")):
		return recognizeScript(argv[last])
	}
	return Invocation{}, false
}

// isBare reports whether a word or a script is a patch and nothing else. No program has such a name.
func isBare(text string) bool {
	text = strings.TrimSpace(text)
	return strings.HasPrefix(text, beginPatch+"\n") && strings.HasSuffix(text, "\n"+endPatch)
}

const (
	modeName = `o (?:errexit|nounset|pipefail)` // a mode of a shell by its name
	program  = `apply(?:_|-|)patch`
	word     = "(?:[^-\\s'\"\\\\$*?\\[\\]{}~;&|<>()#`!][^\\s'\"\\\\$*?\\[\\]{}~;&|<>()`]*|'[^'\n]*'|\"[^\"\\\\$`\n]*\")"
	here     = `<<(-?) *([\w.:@%+=/-]+|'[^'\n]+'|"[^"\n$\\` + "`" + `]+")`
)

// readsScript matches the options of a shell that say that a script follows, if none changes what a patch does.
var readsScript = lazyregexp.Regexp{Text: `^(?:(?:--login|--norc|--noprofile|-[elux]+|-[elux]*` + modeName +
	`) )*-[elux]*c(?: (?:--login|--norc|--noprofile|-[celux]+|-[celux]*` + modeName + `))*$`}

// preamble matches what may come before the patch: modes of the shell that change nothing for it, and its folder.
var preamble = lazyregexp.Regexp{Text: `^\s*(?:set(?: -[eux]+| -[eux]*` + modeName + `)+ *(?:;|&&|\n)\s*)*(?:cd +(` +
	word + `) *&&\s*)?`}

// invocation matches the rest of such a script up to the text of the patch.
var invocation = lazyregexp.Regexp{Text: `^(?:(?:` + program + ` *` + here + `|cat *` + here + ` *\| *` + program +
	`|` + program + ` +"\$\(cat *` + here + `) *\n|` +
	program + ` +('[^']*'|"[^"\\$` + "`" + `]*")\s*$)`}

func recognizeScript(script string) (inv Invocation, ok bool) {
	if isBare(script) {
		return Invocation{Text: script}, true
	}
	before := preamble.Get().FindStringSubmatch(script)
	inv.Dir = strings.Trim(before[1], `'"`)
	script = script[len(before[0]):]
	m := invocation.Get().FindStringSubmatch(script)
	if m == nil || strings.HasPrefix(inv.Dir, "-") {
		return Invocation{}, false
	}
	if quoted := m[7]; quoted != "" {
		inv.Text = quoted[1 : len(quoted)-1]
		return inv, true
	}
	// Use the text up to the delimiter as it is: a patch has no variables.
	indented, delimiter := m[1]+m[3]+m[5] != "", strings.Trim(m[2]+m[4]+m[6], `'"`)
	end := ""
	if m[6] != "" {
		end = `)"`
	}
	var text strings.Builder
	rest := script[len(m[0]):]
	for line := range strings.Lines(rest) {
		rest = rest[len(line):]
		if indented { // its tabs in front of lines do not count
			line = strings.TrimLeft(line, "\t")
		}
		if strings.TrimSuffix(line, "\n") == delimiter {
			inv.Text = text.String()
			return inv, strings.TrimSpace(rest) == end
		}
		text.WriteString(line)
	}
	return Invocation{}, false
}

// In returns the absolute folder that the patch's paths are relative to, for a command in cwd.
func (i Invocation) In(cwd string) string {
	if filepath.IsAbs(i.Dir) {
		return i.Dir
	}
	return filepath.Join(cwd, i.Dir)
}
