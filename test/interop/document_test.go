package interop

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the tables of testdata/hosts.txt")

// hostsFile has what each host showed and passed on.
const hostsFile = "testdata/hosts.txt"

var document sync.Mutex

// compareDocument compares the text of a file between the markers of that name with what the run
// saw.
func compareDocument(t *testing.T, path, name, want string) {
	t.Helper()
	document.Lock()
	defer document.Unlock()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	opening, closing := fmt.Sprintf("<!-- %s -->\n", name), fmt.Sprintf("<!-- /%s -->", name)
	before, rest, found := strings.Cut(string(text), opening)
	got, after, ended := strings.Cut(rest, closing)
	if !found || !ended {
		t.Fatalf("%s lacks the markers %q and %q", path, opening, closing)
	}
	if *update {
		if err := os.WriteFile(path, []byte(before+opening+want+closing+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s is not what the run saw (-saw +document), `go test -run '^%s$' -update` in interop rewrites it:\n%s", path, t.Name(), diff)
	}
}
