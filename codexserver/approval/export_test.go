package approval

import (
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// Patch asks about changes that no request has in this form.
type Patch struct {
	Subject, Cwd, Home, Reason string
	Notes                      []string
	Changes                    []Change
}

type Change = change

// Question returns the question as [PatchQuestion] does.
func (p Patch) Question() *elicit.Question {
	r := protocol.PatchApprovalRequest{Subject: p.Subject, Cwd: p.Cwd, Reason: p.Reason, Notes: p.Notes}
	return (&patch{r, "", p.Home, p.Changes}).question()
}
