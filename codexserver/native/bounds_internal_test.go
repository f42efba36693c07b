package native

import (
	"fmt"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/native/internal/model"
)

// TestLists has lists that are shown whole, and longer ones.
func TestLists(t *testing.T) {
	for n, want := range map[int]string{0: "", 100: "n99", 101: "and 1 more"} {
		tools := []model.Tool{{Type: webSearchType}}
		for i := range n {
			tools = append(tools, model.Tool{Name: fmt.Sprint("n", i)})
		}
		if got := names(tools); len(got) != n && n <= 100 || n > 0 && got[len(got)-1] != want {
			t.Errorf("%d tools: %q", n, got)
		}
	}
}
