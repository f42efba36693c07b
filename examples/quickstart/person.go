package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// person is a person at a terminal.
type person struct {
	answer string        // "" asks the person
	keys   <-chan rune   // what the person types
	raw    func() func() // lets keys come without Enter, until the function that it returns is called
	out    io.Writer
}

// show prints what happens in the turn.
func (p *person) show(event protocol.EventMsg) {
	switch e := event.(type) {
	case protocol.ExecCommandBegin:
		fmt.Fprintf(p.out, "  running: %s\n", strings.Join(e.Command, " "))
	case protocol.ExecCommandOutputDelta:
		for line := range strings.Lines(string(e.Chunk)) {
			fmt.Fprintf(p.out, "  | %s\n", strings.TrimRight(line, "\n"))
		}
	case protocol.ExecCommandEnd:
		fmt.Fprintf(p.out, "  exit code %d\n", e.ExitCode)
	case protocol.AgentMessage:
		fmt.Fprintf(p.out, "  model: %s\n", e.Message)
	case protocol.AgentMessageDelta, protocol.AgentReasoningDelta, protocol.TokenCount: // there are many
	default:
		fmt.Fprintf(p.out, "  event %s\n", event.EventType())
	}
}

// decide asks the person.
func (p *person) decide(ctx context.Context, r *approval.Request) elicit.Outcome {
	fmt.Fprintln(p.out, r.Question.Message)
	decision := decisionOf(p.answer)
	if decision == "" {
		fmt.Fprint(p.out, "y approve   n deny   s stop: ")
		restore := p.raw()
		decision = p.press(ctx)
		restore()
	}
	fmt.Fprintf(p.out, "=> %s\n", decision)
	return elicit.Outcome{Decision: decision}
}

// press waits for a key that decides. Other keys do nothing.
func (p *person) press(ctx context.Context) elicit.Decision {
	const ctrlC = 3 // as a key, while it makes no signal
	for {
		select {
		case key, ok := <-p.keys:
			switch decision := decisionOf(string(key)); {
			case !ok: // the input ended
				return elicit.Denied
			case key == ctrlC:
				return elicit.Abort
			case decision != "":
				return decision
			}
		case <-ctx.Done():
			return elicit.Abort
		}
	}
}

// decisionOf returns the decision for a key of codex-mcp ask, or for the name of an action in MCP, or "".
func decisionOf(s string) elicit.Decision {
	switch s {
	case "y", "accept":
		return elicit.Approved
	case "n", "decline":
		return elicit.Denied
	case "s", "cancel":
		return elicit.Abort
	}
	return ""
}
