package audit_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/audit"
)

// A record has what was decided, what ran because of it, and how that ended. Whoever changes a byte of it is found.
func Example() {
	dir, _ := os.MkdirTemp("", "example")
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "approvals.log")
	log, _ := audit.Open(path, 1<<20)
	exit := 0
	for _, line := range []audit.Line{
		{ID: "d1", Question: []byte(`{"type":"exec_approval_request","call_id":"1","command":["git","push"]}`), Decision: "approved", By: "client"},
		{ID: "e1", Effect: audit.Begins, DecidedBy: "d1", Kind: "command", Command: []string{"git", "push"}},
		{Of: "e1", Effect: audit.Ends, Exit: &exit},
	} {
		line.Time, line.Thread = time.Unix(1_800_000_000, 0).UTC(), "t1"
		text, _ := line.Append(nil)
		_, _ = log.Write(append(text, '\n'))
	}
	_ = log.Close()
	whole, _ := audit.Verify(audit.Paths(path), nil)
	fmt.Println(whole.Lines, "lines,", len(whole.Faults), "faults")

	text, _ := os.ReadFile(path)
	_ = os.WriteFile(path, bytes.Replace(text, []byte(`"git","push"],`), []byte(`"git","pull"],`), 1), 0o600)
	changed, _ := audit.Verify(audit.Paths(path), nil)
	for _, f := range changed.Faults {
		fmt.Printf("record %d: %s\n", f.N, f.Why)
	}
	// Output:
	// 3 lines, 0 faults
	// record 2: it was changed: its hash does not fit
}
