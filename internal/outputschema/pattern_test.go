package outputschema_test

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"github.com/codexmcp/codexmcp/internal/outputschema"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestPatterns compares patterns with those of ECMAScript: each line of testdata/patterns.ndjson has a pattern, and the
// characters that new RegExp(pattern, "u") of Node.js matches and does not match.
func TestPatterns(t *testing.T) {
	text := must.Get(os.ReadFile("testdata/patterns.ndjson"))(t)
	n := 0
	for line := range bytes.Lines(text) {
		var row [3]string
		must.OK(t, json.Unmarshal(line, &row))
		re, err := outputschema.CompilePattern(row[0])
		if err != nil {
			t.Errorf("%s: %v", row[0], err)
			continue
		}
		for i, want := range []bool{true, false} {
			for _, c := range row[i+1] {
				if n++; re.MatchString(string(c)) != want {
					t.Errorf("%s matches %q: %v", row[0], c, !want)
				}
			}
		}
	}
	if n < 90 {
		t.Errorf("only %d characters are there", n)
	}
	if re, err := outputschema.CompilePattern("a$"); err != nil || re.MatchString("a\n") {
		t.Errorf("$ matches before the end: %v", err)
	}
	for _, wrong := range []string{`\u00g9`, `\u`, `\u{}`, `\u{110000}`, "[", `a\`, "(?=a)", `(a)\1`, `\cM`} {
		if re, err := outputschema.CompilePattern(wrong); err == nil {
			t.Errorf("%s is taken as %s", wrong, re)
		}
	}
}
