package native_test

import (
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestSearchFiles(t *testing.T) {
	e, home := inHome(t, native.Options{}, map[string]string{"abexy": ""})
	got, err := e.SearchFiles(t.Context(), protocol.FuzzyFileSearchParams{Query: "abe", Roots: []string{home}})
	want := &protocol.FuzzyFileSearchResult{Files: []protocol.FuzzyFile{{Root: home, Path: "abexy", FileName: "abexy", Indices: []uint32{0, 1, 2}}}}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(protocol.FuzzyFile{}, "Score")); err != nil || diff != "" {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
}
