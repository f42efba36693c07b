package codexmcp_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// idioms are phrases that a reader has to translate, with better words.
var idioms = []struct {
	pattern *regexp.Regexp
	instead string
}{
	{phrase(`(tell|tells|telling|told)`), "report, send, inform, distinguish"},
	{phrase(`(give|gives|giving|gave)`), "return, pass, name, set"},
	{phrase(`(nobody|somebody|whoever)`), "who acts"},
	{phrase(`(is|are|was|were) (no|none)`), "is not, fails, is missing"},
	{phrase(`that (has|have) none`), "without"},
	{phrase(`knows? (of|nothing)`), "knows, does not know"},
	{phrase(`(?-i:beside)`), "next to, besides, at the same time"},
	{phrase(`(go|goes|went|gone) on`), "continue"},
	{phrase(`(once more|anew|in vain|lest|of late)`), "again, without effect, so that not, recently"},
	{phrase(`nor`), "and not"},
	{phrase(`(stands|stood)`), "is, appears, is written"},
	{phrase(`(mends?|mended|mending)`), "fix"},
	{phrase(`says (whether|if)`), "reports whether"},
	{phrase(`(has|have) to do with`), "concerns"},
	{phrase(`the like`), "the whole list, or an example"},
}

// plain are phrases that contain the words of an idiom but are common English.
var plain = []*regexp.Regexp{
	phrase(`there (is|are|was|were) (no|none)`),             // says that something does not exist
	phrase(`(is|are|was|were) no (longer|more|less|later)`), // compares
	phrase(`neither[^;]{1,80}? nor`),                        // a pair
	phrase(`(give|gives|giving|gave) (up|way)`),             // stops trying, makes room
	phrase(`stands (for|in for|still)`),                     // means, replaces, does not move
}

// phrase returns a pattern for whole words in any case, with any space between them.
func phrase(words string) *regexp.Regexp {
	return regexp.MustCompile(`(?i)\b` + strings.ReplaceAll(words, " ", `\s+`) + `\b`)
}

// findIdioms returns a message for each idiom in the text. line is the number of its first
// line.
func findIdioms(file string, line int, text string) []string {
	for _, p := range plain {
		text = blank(p, text)
	}
	var all []string
	for _, idiom := range idioms {
		for _, m := range idiom.pattern.FindAllStringIndex(text, -1) {
			at := line + strings.Count(text[:m[0]], "\n")
			all = append(all, fmt.Sprintf("%s:%d: %q: write %s", file, at, text[m[0]:m[1]], idiom.instead))
		}
	}
	return all
}

func TestFindIdioms(t *testing.T) {
	for text, want := range map[string]string{
		"there is no reader, so it gives up":          "",
		"it stands for the other, which is no longer": "",
		"neither a client\nnor a server":              "",
		"a line that is\nno JSON":                     `f:2: "is\nno": write is not, fails, is missing`,
		"The caller is Told why":                      `f:2: "Told": write report, send, inform, distinguish`,
		"Beside is a function, beside a word":         `f:2: "beside": write next to, besides, at the same time`,
	} {
		if got := strings.Join(findIdioms("f", 2, text), "; "); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

// TestPlainEnglish looks for idioms in comments, in texts of programs, and in documents.
func TestPlainEnglish(t *testing.T) {
	fset := token.NewFileSet()
	seen := 0
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if file != "." && (d.Name()[0] == '.' || slices.Contains([]string{"testdata", "node_modules", "dist", "prompts"}, d.Name())) {
				return filepath.SkipDir
			}
			return nil
		}
		file = filepath.ToSlash(file)
		var found []string
		switch filepath.Ext(file) {
		case ".go":
			if found, err = goIdioms(fset, file); err != nil {
				return err
			}
		case ".html", ".js", ".md":
			text, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			found = findIdioms(file, 1, blank(inline, blank(fence, string(text))))
		default:
			return nil
		}
		seen++
		for _, f := range found {
			t.Error(f)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen < 100 {
		t.Fatalf("only %d files found: the walk is wrong", seen)
	}
}

// goIdioms checks the comments of a Go file, and its texts unless it is a test.
func goIdioms(fset *token.FileSet, file string) ([]string, error) {
	if file == "language_test.go" {
		return nil, nil
	}
	syntax, err := parser.ParseFile(fset, file, nil, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	var all []string
	for _, c := range syntax.Comments {
		all = append(all, findIdioms(file, fset.Position(c.Pos()).Line, c.Text())...)
	}
	if strings.HasSuffix(file, "_test.go") {
		return all, nil
	}
	ast.Inspect(syntax, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING && strings.Contains(lit.Value, " ") {
			if text, err := strconv.Unquote(lit.Value); err == nil {
				all = append(all, findIdioms(file, fset.Position(lit.Pos()).Line, text)...)
			}
		}
		return true
	})
	return all, nil
}

// blank removes each match of the pattern, except its line breaks.
func blank(pattern *regexp.Regexp, text string) string {
	return pattern.ReplaceAllStringFunc(text, func(s string) string {
		return strings.Repeat("\n", strings.Count(s, "\n"))
	})
}

// TestDocSentences checks the comment of every exported function, method, type, constant
// and variable of the public packages: its first sentence starts with the name, ends with
// a full stop and has at most thirty words. TestEveryNameIsDocumented finds those without
// a comment.
func TestDocSentences(t *testing.T) {
	public := exported(t)
	for _, s := range sources(t) {
		if public[s.pkg] == nil || s.test || ast.IsGenerated(s.syntax) {
			continue
		}
		for _, d := range s.syntax.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Name.IsExported() && d.Doc != nil && (d.Recv == nil || ast.IsExported(receiver(d))) {
					checkSentence(t, s.file, d.Name.Name, d.Doc.Text())
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					var name *ast.Ident
					var doc string
					switch spec := spec.(type) {
					case *ast.TypeSpec:
						name, doc = spec.Name, spec.Doc.Text()
					case *ast.ValueSpec:
						name, doc = spec.Names[0], spec.Doc.Text()
					default:
						continue
					}
					if !d.Lparen.IsValid() {
						doc = d.Doc.Text()
					}
					if name.IsExported() && doc != "" {
						checkSentence(t, s.file, name.Name, doc)
					}
				}
			}
		}
	}
}

var sentenceEnd = regexp.MustCompile(`[.:](\s|$)`)

// checkSentence allows an article before the name, as staticcheck does.
func checkSentence(t *testing.T, file, name, doc string) {
	t.Helper()
	if !regexp.MustCompile(`^((A|An|The) )?` + name + `\b`).MatchString(doc) {
		t.Errorf("%s: the comment of %s starts with %.40q", file, name, doc)
		return
	}
	end := sentenceEnd.FindStringIndex(doc)
	if end == nil {
		t.Errorf("%s: the comment of %s has no sentence", file, name)
		return
	}
	if n := len(strings.Fields(doc[:end[0]])); n > 30 {
		t.Errorf("%s: the first sentence on %s has %d words", file, name, n)
	}
}
