package paths_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/internal/paths"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestExisting has paths with names that are in a folder in another form of Unicode. Other systems take both
// forms for the same name.
func TestExisting(t *testing.T) {
	const composed, apart = "caf\u00e9", "cafe\u0301"
	for _, tt := range []struct {
		name        string
		there       string // a file, or files with a blank line between them
		path, found string
	}{
		{"the name itself", composed, composed, composed},
		{"nothing", "x", composed, composed},
		{"apart", apart, composed, apart},
		{"composed", composed, apart, composed},
		{"both", composed + "\n" + apart, composed, composed},
		{"folders", apart + "/" + apart + "/x", composed + "/" + composed + "/x", apart + "/" + apart + "/x"},
		{"a new file in a folder", apart + "/x", composed + "/new", apart + "/new"},
		{"a new name in a folder", apart + "/x", composed + "/\u00fc/new", apart + "/\u00fc/new"},
		{"below a file", apart, composed + "/x", apart + "/x"},
		{"another letter", "cafe\u0300", composed, composed},
		{"without the accent", "cafe", composed, composed},
		{"another case", "CAFE\u0301", composed, composed},
		{"two accents in another order", "a\u0323\u0302", "\u1ead", "a\u0323\u0302"},
		{"Korean", "\u1112\u1161\u11ab", "\ud55c", "\u1112\u1161\u11ab"},
		{"a space of macOS", "Shot 3.04\u202fPM.png", "Shot 3.04 PM.png", "Shot 3.04\u202fPM.png"},
		{"two that look so", "a\u202fb\na\u00a0b", "a b", "a b"},
		{"no letter", "\xff", "\u00e9", "\u00e9"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			for file := range strings.SplitSeq(tt.there, "\n") {
				path := filepath.Join(dir, file)
				must.OK(t, os.MkdirAll(filepath.Dir(path), 0o755))
				must.OK(t, os.WriteFile(path, nil, 0o600))
			}
			must.Equal(t, "path", filepath.Join(dir, tt.found), paths.Existing(filepath.Join(dir, tt.path)))
		})
	}
}
