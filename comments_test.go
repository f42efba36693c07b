package codexmcp_test

import (
	"go/types"
	"regexp"
	"strings"
	"testing"
)

// TestDocComments checks the references in comments of public packages, programs and
// examples: files, commands, and names in brackets.
func TestDocComments(t *testing.T) {
	public, all := exported(t), loaded(t)
	file := regexp.MustCompile(`\b(?:docs|examples)/[\w./-]*\w`)
	name := regexp.MustCompile(`\[\*?(?:([a-z]\w*)\.)?([A-Z]\w*)(?:\.([A-Z]\w*))?\]`)
	imports := map[string]map[string]*types.Package{} // by package and name, as go doc looks them up
	for _, s := range sources(t) {
		if imports[s.pkg] == nil {
			imports[s.pkg] = map[string]*types.Package{"": public[s.pkg]}
		}
		for _, i := range s.syntax.Imports {
			if p := all[strings.Trim(i.Path.Value, `"`)]; p != nil && !s.test {
				imports[s.pkg][p.Name()] = p
			}
		}
	}
	for _, s := range sources(t) {
		if s.test || strings.Contains(s.pkg, "internal/") {
			continue
		}
		for _, group := range s.syntax.Comments {
			for line := range strings.Lines(group.Text()) {
				for _, f := range file.FindAllString(line, -1) {
					exists(t, s.file, f)
				}
				if code, ok := strings.CutPrefix(line, "\t"); ok {
					if !strings.ContainsAny(code, "[(") && (strings.HasPrefix(code, "go ") || strings.HasPrefix(code, "cd ")) {
						commands(t, s.file, code)
					}
					continue
				}
				for _, m := range name.FindAllStringSubmatch(line, -1) {
					if pkg := imports[s.pkg][m[1]]; public[s.pkg] != nil && (pkg == nil || !has(pkg, m[2], m[3])) {
						t.Errorf("%s: %s leads nowhere", s.file, m[0])
					}
				}
			}
		}
	}
}
