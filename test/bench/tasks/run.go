package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// result is the result of a task.
type result struct {
	passed   bool
	reason   string // why it failed
	requests int
	tokens   int64
	took     time.Duration
}

// run lets the model work on the task in dir and judges the result.
func run(ctx context.Context, o *options, t task, dir string, out io.Writer) (result, error) {
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	home, work := filepath.Join(dir, "home"), filepath.Join(dir, "work")
	cache := filepath.Join(work, ".cache") // the model may not write Go's own cache
	if err := os.MkdirAll(home, 0o700); err != nil {
		return result{}, err
	}
	if err := t.lay(ctx, work); err != nil {
		return result{}, err
	}
	h := &host{}
	if o.verbose {
		h.out = out
	}
	begin := time.Now()
	asked, err := turn(ctx, o, append(append(os.Environ(), "GOCACHE="+cache), offline...), home, work, t.prompt, h)
	if !asked {
		return result{}, err
	}
	r := result{requests: h.requests, tokens: h.tokens, took: time.Since(begin)}
	if err == nil {
		err = t.judge(ctx, work)
	}
	if err != nil {
		r.reason = err.Error()
	}
	r.passed = err == nil
	return r, nil
}

// turn runs one turn of the engine in the folder work. It was asked unless it could not begin.
func turn(
	ctx context.Context, o *options, environ []string, home, work, prompt string, h *host,
) (asked bool, err error) {
	e, err := native.New(&native.Options{
		CodexHome: home,
		Environ:   environ,
		Overrides: map[string]any{
			"model": o.model, "model_provider": "measured",
			"model_providers.measured.base_url": o.baseURL,
			"model_providers.measured.wire_api": o.wire,
			"model_providers.measured.env_key":  o.envKey,
		},
	})
	if err != nil {
		return false, err
	}
	defer e.Close()
	c, err := e.Start(ctx, protocol.Config{
		Cwd: work, ApprovalPolicy: protocol.ApprovalNever, Sandbox: protocol.SandboxWorkspaceWrite,
	}, h)
	if err != nil {
		return false, err
	}
	defer c.Close()
	return true, c.Turn(ctx, protocol.TurnInput{Items: protocol.TextInput(prompt)})
}

// host counts the cost of a turn and denies all questions.
type host struct {
	engine.DenyAll
	out      io.Writer // nil shows nothing
	requests int
	tokens   int64
}

func (h *host) Emit(m protocol.EventMsg) {
	switch m := m.(type) {
	case protocol.TokenCount:
		if m.Info != nil && m.Info.TotalTokenUsage.TotalTokens > h.tokens {
			h.requests++
			h.tokens = m.Info.TotalTokenUsage.TotalTokens
		}
	case protocol.AgentMessage:
		h.show("says", m.Message)
	case protocol.ExecCommandBegin:
		h.show("runs", strings.Join(m.Command, " "))
	case protocol.PatchApplyBegin:
		h.show("patches", fmt.Sprint(len(m.Changes), " files"))
	}
}

func (h *host) show(what, text string) {
	if h.out != nil {
		fmt.Fprintf(h.out, "     %s: %s\n", what, text)
	}
}

func (h *host) EmitAs(_ string, m protocol.EventMsg) { h.Emit(m) }

func (h *host) Ask(context.Context, approval.Subject) elicit.Outcome {
	return elicit.Outcome{Decision: elicit.Denied}
}
