package terminal

import (
	"context"

	"github.com/codexmcp/codexmcp/codexserver/approval"
)

// Approve asks the person at a terminal about changes to files, as about a patch of a turn, and returns whether they are
// approved, and what was said of a denial. The error is that of ctx if that has ended or the person stops it. The console
// must be one that asks.
func Approve(ctx context.Context, c *Console, p approval.Patch) (approved bool, feedback string, err error) {
	running, stop := context.WithCancel(ctx)
	defer stop()
	screen := &printer{w: c.Err, cwd: p.Cwd, asks: true, asked: map[string]bool{}, titles: map[string]string{},
		width: c.Width, rewrites: c.Rewrites}
	if c.OutTerminal {
		screen.w = c.Out
	}
	s := &session{p: screen, typed: &typed{in: c.Input, got: make(chan string, 1)}, turn: running, stop: stop}
	d := &dialogue{s: s, p: screen, ctx: context.WithoutCancel(ctx), why: p.Why}
	d.params.Message = p.Question(ClientName, "").Message
	d.params.Meta.Approval.Kind, d.params.Meta.Approval.Changes = "patch", p.Changes
	answer, err := d.run()
	if err == nil && answer.Action == "cancel" {
		err = context.Canceled
	}
	if err != nil {
		return false, "", err
	}
	feedback, _ = answer.Content["feedback"].(string)
	return answer.Action == "accept", feedback, nil
}
