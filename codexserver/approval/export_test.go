package approval

import "github.com/codexmcp/codexmcp/elicit"

// PatchForm asks about changes that no patch has in this form.
type PatchForm struct {
	Asker, Cwd, Home, Reason string
	Notes                    []string
	Changes                  []Change
}

type Change = change

// Question returns the question as [Patch.Question] does.
func (f PatchForm) Question() *elicit.Question {
	p := Patch{Asker: f.Asker, Cwd: f.Cwd, Reason: f.Reason, Notes: f.Notes}
	return (&patchForm{p, "", f.Home, f.Changes}).question()
}
