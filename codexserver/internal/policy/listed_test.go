package policy_test

import (
	"encoding/json"
	"flag"
	"os"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/policy"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

var update = flag.Bool("update", false, "write the list of options anew")

// TestOptionsFile compares the lists of options with the file whose options the tests of
// the engine's shell tool run, one by one, in a hostile repository.
func TestOptionsFile(t *testing.T) {
	const file = "testdata/options.json"
	listed := policy.ListedOptions()
	if *update {
		text, err := json.MarshalIndent(listed, "", "\t")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, append(text, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var kept map[string][]string
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &kept); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(kept, listed, cmpopts.SortSlices(func(a, b string) bool { return a < b })); diff != "" {
		t.Errorf("%s is not the list (-file +list); go test -update writes it:\n%s", file, diff)
	}
}
