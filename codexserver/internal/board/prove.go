package board

import (
	"encoding/json"
	"fmt"
	"log/slog"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/elicit"
)

// prove returns the proof of the approval d, if the desk demands one. Without it the approval does not
// count, wherever it was given: a client, a program or a default proves nothing.
func (b *Board) prove(r *approval.Request, d *approval.Decision) (proof json.RawMessage) {
	prover, ok := b.options.Desk.(approval.Prover)
	if !ok || !d.Decision.Approves() {
		return nil
	}
	err := guard(b.log, "Desk.Prove", func() (err error) {
		proof, err = prover.Prove(r, d.Decision)
		return err
	})
	if err == nil {
		return proof
	}
	words := fmt.Sprintf("the approval of %s does not count: %v", b.name(d.By), err)
	d.Outcome = elicit.Outcome{Decision: elicit.Denied, Reason: elicit.ReasonDeclined, Feedback: words, Detail: "denied: " + words, Level: slog.LevelWarn}
	d.Remarks = append(d.Remarks, "Nothing was run: "+words+".")
	return nil
}
