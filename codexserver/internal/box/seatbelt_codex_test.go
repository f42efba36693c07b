//go:build seatbelt

package box

import (
	"bytes"
	"flag"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

var codexForMacOS = flag.String("codex-macos", "", "the program of the newest Codex for macOS, which has its profile as text")

// ungranted are the rights that Codex's profile gives and ours does not, each with the reason.
var ungranted = map[string]string{
	`mach-lookup (global-name "com.apple.PowerManagement.control")`:                       "a command keeps no machine awake",
	`ipc-posix-shm-read-data (ipc-posix-name-regex #"^/__KMP_REGISTERED_LIB_[0-9]+$")`:    "OpenMP works without, and all programs share the names",
	`ipc-posix-shm-write-create (ipc-posix-name-regex #"^/__KMP_REGISTERED_LIB_[0-9]+$")`: "OpenMP works without, and all programs share the names",
	`ipc-posix-shm-write-unlink (ipc-posix-name-regex #"^/__KMP_REGISTERED_LIB_[0-9]+$")`: "OpenMP works without, and all programs share the names",
	`file-ioctl (regex #"^/dev/ttys[0-9]+")`:                                              "a command inherits no terminal, and must put no words into one",
	`file-write-data (require-all (path "/dev/null") (vnode-type CHARACTER-DEVICE))`:      "ours names the path alone",
}

// TestSeatbeltAgainstCodex compares the profile with that of Codex's program, right by right.
func TestSeatbeltAgainstCodex(t *testing.T) {
	program := must.Get(os.ReadFile(*codexForMacOS))(t)
	const begin, minimal = "(version 1)", "; macOS platform defaults included"
	_, text, found := bytes.Cut(program, []byte(begin))
	text, _, ended := bytes.Cut(text, []byte(minimal)) // what follows is for policies that hide files
	if !found || !ended {
		t.Fatal("the program has no profile of the known form")
	}
	ours, theirs := rightsOf(t, seatbeltBase), rightsOf(t, string(text))
	if len(theirs) < 60 {
		t.Errorf("only %d rights: %q", len(theirs), slices.Sorted(maps.Keys(theirs)))
	}
	for right := range theirs {
		operation, _, filtered := strings.Cut(right, " ")
		if has := ours[right] || filtered && ours[operation]; has == (ungranted[right] != "") {
			t.Errorf("ours has %s: %t, and the table has the reason %q", right, has, ungranted[right])
		}
	}
	for right := range ungranted {
		if !theirs[right] {
			t.Errorf("the table has %s, which Codex does not give", right)
		}
	}
}

// rightsOf returns each operation that a profile allows, with each of its filters.
func rightsOf(t *testing.T, profile string) map[string]bool {
	rights := map[string]bool{}
	for _, rule := range forms(profile) {
		words := forms(strings.TrimSuffix(strings.TrimPrefix(rule, "("), ")"))
		var operations, filters []string
		for _, word := range words[1:] {
			if strings.HasPrefix(word, "(") && !strings.HasPrefix(word, "(target") {
				filters = append(filters, word)
			} else if !strings.HasPrefix(word, "(") {
				operations = append(operations, word)
			}
		}
		if words[0] != "allow" {
			continue
		}
		for _, operation := range operations {
			if len(filters) == 0 {
				rights[operation] = true
			}
			for _, filter := range filters {
				rights[operation+" "+filter] = true
			}
		}
	}
	return rights
}

// tokens are the comments, texts, brackets and words of a profile.
var tokens = regexp.MustCompile(`;.*|#?"[^"]*"|[()]|[^\s()";]+`)

// forms returns the words and the lists of a text in brackets, without comments, and with one blank between words.
func forms(text string) (list []string) {
	depth, one := 0, ""
	for _, token := range tokens.FindAllString(text, -1) {
		switch {
		case token[0] == ';':
			continue
		case token == ")":
			depth--
		case one != "" && !strings.HasSuffix(one, "("):
			one += " "
		}
		if one += token; token == "(" {
			depth++
		}
		if depth == 0 {
			list, one = append(list, one), ""
		}
	}
	return list
}
