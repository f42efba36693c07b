package house_test

import (
	"go/scanner"
	"go/token"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestDocsErrors checks that the code has the texts of errors in docs/troubleshooting.md: each part between two … is in one
// string. An entry begins with its text.
func TestDocsErrors(t *testing.T) {
	var literals strings.Builder
	for _, file := range files(t, ".go") {
		if strings.HasSuffix(file, "_test.go") || strings.HasPrefix(strings.TrimPrefix(file, "contrib/"), "examples/") {
			continue
		}
		src := []byte(read(t, file))
		var s scanner.Scanner
		s.Init(token.NewFileSet().AddFile(file, -1, len(src)), src, nil, 0)
		for {
			_, tok, text := s.Scan()
			if tok == token.EOF {
				break
			}
			if tok == token.STRING {
				if text, err := strconv.Unquote(text); err == nil {
					literals.WriteString(text + "\x00")
				}
			}
		}
	}
	code := literals.String() + "context deadline exceeded\x00listen tcp\x00bind\x00address already in use" // of Go
	has := func(text string) {
		for part := range strings.SplitSeq(text, "…") {
			if part = strings.TrimSpace(part); part != "" && !strings.Contains(code, part) {
				t.Errorf("the code has no text %q of the entry %s", part, text)
			}
		}
	}
	found := 0
	for _, entry := range regexp.MustCompile("(?m)^- (`.*)$").FindAllStringSubmatch(read(t, "docs/troubleshooting.md"), -1) {
		text := inline.FindStringSubmatch(entry[1])[1]
		if strings.HasPrefix(text, "This MCP client") || strings.HasPrefix(text, "No answer") { // a sentence of parts, which a test of the program provokes
			continue
		}
		has(text)
		found++
	}
	if found < 15 {
		t.Errorf("only %d entries found: the search is broken", found)
	}
}
