package house_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// page is a parsed Markdown file.
type page struct {
	file     string
	text     string // with the fenced blocks, whose # begin no heading
	headings [][]int
	anchors  []string // of the headings
	blocks   []block
}

// block is the text between two fences.
type block struct {
	at, lang, text string
}

var (
	fence   = regexp.MustCompile("(?ms)^ *```([^\n]*)\n(.*?)^ *```$\n?")
	inline  = regexp.MustCompile("`([^`\n]+)`")
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ +(.*)$`)
)

// pages returns the project's Markdown files by their paths.
func pages(t *testing.T) map[string]page {
	t.Helper()
	all := map[string]page{}
	for _, file := range files(t, ".md") {
		p := page{file: file, text: read(t, file)}
		for _, m := range fence.FindAllStringSubmatchIndex(p.text, -1) {
			line := 1 + strings.Count(p.text[:m[0]], "\n")
			p.blocks = append(p.blocks, block{fmt.Sprintf("%s:%d", p.file, line), p.text[m[2]:m[3]], p.text[m[4]:m[5]]})
		}
		p.text = fence.ReplaceAllStringFunc(p.text, func(block string) string { return strings.ReplaceAll(block, "#", "") })
		p.headings = heading.FindAllStringSubmatchIndex(p.text, -1)
		for _, m := range p.headings {
			slug := strings.Map(func(r rune) rune {
				switch {
				case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
					return unicode.ToLower(r)
				case r == ' ':
					return '-'
				}
				return -1
			}, p.text[m[2]:m[3]])
			name := slug
			for i := 1; slices.Contains(p.anchors, name); i++ {
				name = fmt.Sprintf("%s-%d", slug, i)
			}
			p.anchors = append(p.anchors, name)
		}
		all[file] = p
	}
	return all
}

func TestDocsLinks(t *testing.T) {
	root(t)
	all := pages(t)
	for _, p := range all {
		text := inline.ReplaceAllString(fence.ReplaceAllString(p.text, ""), "")
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			file, anchor, _ := strings.Cut(m[1], "#")
			target := p.file
			if file != "" {
				target = path.Join(path.Dir(p.file), file)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: the link %s: %v", p.file, m[1], err)
			}
			if anchor != "" && !slices.Contains(all[target].anchors, anchor) {
				t.Errorf("%s: the link %s: no such heading", p.file, m[1])
			}
		}
	}
}

// TestDocsQuestions checks that users find the answers to questions in two clicks: README.md leads to
// the page, and the section has the words. Each line of testdata/questions.txt is a question, its
// section and the words. A section ends at the next heading.
func TestDocsQuestions(t *testing.T) {
	root(t)
	all := pages(t)
	words := func(s string) string { return strings.Join(strings.Fields(s), " ") }
	n := 0
	for line := range strings.Lines(read(t, "internal/house/testdata/questions.txt")) {
		n++
		cells := strings.Split(strings.TrimSpace(line), " | ")
		file, anchor, _ := strings.Cut(cells[1], "#")
		if file != "README.md" && !strings.Contains(all["README.md"].text, "]("+file) {
			t.Errorf("README.md does not lead to %s", file)
		}
		p := all[file]
		section := ""
		if i := slices.Index(p.anchors, anchor); i >= 0 {
			end := len(p.text)
			if i+1 < len(p.headings) {
				end = p.headings[i+1][0]
			}
			section = p.text[p.headings[i][0]:end]
		}
		if !strings.Contains(words(section), cells[2]) {
			t.Errorf("%s does not have %q, which answers %q", cells[1], cells[2], cells[0])
		}
	}
	if n < 40 {
		t.Errorf("%d questions", n)
	}
}

// TestDocsBlocks checks that the Go code in the documents can be used as it is. TestReadme runs the commands, and TestDocsConfigurations
// of codex-mcp reads JSON and TOML.
func TestDocsBlocks(t *testing.T) {
	root(t)
	for _, p := range pages(t) {
		for _, b := range p.blocks {
			switch b.lang {
			case "go":
				typeCheck(t, b)
			case "json", "toml", "sh", "text", "haproxy", "bash", "ini", "dockerfile", "yaml", "js":
			default:
				t.Errorf("%s: the block's language is %q", b.at, b.lang)
			}
		}
	}
}

// typeCheck type-checks a Go block: a whole file, or statements that may use a context named
// ctx and the project's packages by their names.
func typeCheck(t *testing.T, b block) {
	t.Helper()
	all := loaded(t)
	text := b.text
	if !strings.HasPrefix(text, "package ") {
		var imports strings.Builder
		imports.WriteString("import \"context\"\n")
		for path, p := range exported(t) {
			if strings.Contains(text, p.Name()+".") {
				fmt.Fprintf(&imports, "import %q\n", module+"/"+path)
			}
		}
		text = "package p\n" + imports.String() + "func _(ctx context.Context) {\n" + text + "}\n"
	}
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, b.at, text, 0)
	if err != nil {
		t.Error(err)
		return
	}
	config := types.Config{
		Importer: importerFunc(func(path string) (*types.Package, error) {
			if p := all[path]; p != nil {
				return p, nil
			}
			return nil, fmt.Errorf("nothing in the module imports %s", path)
		}),
		Error: func(err error) {
			if !strings.Contains(err.Error(), "declared and not used") { // the rest is the reader's
				t.Error(err)
			}
		},
	}
	config.Check("snippet", fset, []*ast.File{file}, nil) // errors went to config.Error
}

type importerFunc func(path string) (*types.Package, error)

func (f importerFunc) Import(path string) (*types.Package, error) { return f(path) }
