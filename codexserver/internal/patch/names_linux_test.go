package patch_test

import (
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestPlanFindsNames has patches that name files in the composed form of Unicode, where the folder has the other one.
func TestPlanFindsNames(t *testing.T) {
	const there, said = "cafe\u0301", "caf\u00e9"
	for _, tt := range []struct {
		name, text string
		want       map[string]string
	}{
		{"update", "*** Update File: " + said + ".txt\n@@\n-one\n+two", map[string]string{there + ".txt": "two\n", there + "/x": "x\n"}},
		{"add", "*** Add File: " + said + "/" + said + "\n+y", map[string]string{there + ".txt": "one\n", there + "/x": "x\n", there + "/" + said: "y\n"}},
		{"delete", "*** Delete File: " + said + "/x", map[string]string{there + ".txt": "one\n"}},
		{"move", "*** Update File: " + said + ".txt\n*** Move to: " + said + "/x2\n@@\n-one\n+two", map[string]string{there + "/x": "x\n", there + "/x2": "two\n"}},
		{"two names of one file", "*** Update File: " + said + ".txt\n@@\n-one\n+two\n*** Update File: " + there + ".txt\n@@\n-two\n+three", map[string]string{there + ".txt": "three\n", there + "/x": "x\n"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			writeTree(t, dir, map[string]string{there + ".txt": "one\n", there + "/x": "x\n"})
			p := plan(t, dir, tt.text)
			for path := range p.Changes() {
				if !strings.Contains(path, there) {
					t.Errorf("the question shows %q", path)
				}
			}
			must.Equal(t, "links", map[string]string{}, p.Links())
			must.OK(t, p.Apply())
			must.Equal(t, "tree", tt.want, readTree(t, dir, dir))
		})
	}
}
