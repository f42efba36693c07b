package client

import (
	"cmp"
	"context"
	"encoding/json"

	"github.com/codexmcp/codexmcp/codexserver/internal/decide"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/jsonrpc"
	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Question is a question of the server. The message is what a person must read; the other
// fields are for programs.
type Question struct {
	// Message is the question, with all that is needed to decide.
	Message string
	// Thread is the conversation that asks, "" if the server does not say.
	Thread string
	// Kind is "exec" for a command, "patch" for changes to files, and "" for other
	// questions.
	Kind string
	// Command and Cwd are the command and its folder.
	Command []string
	Cwd     string
	// Words are the command without a shell around it, if it is one plain command, and else nil: git and status for
	// bash -lc "git status". The program is named as it was written. A rule on Words is for that command, not for what
	// it starts: env, xargs, make and git itself start others.
	Words []string
	// Form is the JSON schema of the answer's fields.
	Form json.RawMessage
	// Params are the params of elicitation/create, as they arrived.
	Params json.RawMessage
}

func newQuestion(params json.RawMessage) (*Question, error) {
	var p struct {
		Message         string         `json:"message"`
		RequestedSchema jsontext.Value `json:"requestedSchema"`
		ThreadID        string         `json:"threadId"`
		Meta            struct {
			Approval struct {
				Kind     string   `json:"kind"`
				ThreadID string   `json:"threadId"`
				Command  []string `json:"command"`
				Cwd      string   `json:"cwd"`
			} `json:"codex/approval"`
		} `json:"_meta"`
	}
	if err := jsonv2.Unmarshal(params, &p); err != nil {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "elicitation/create: %v", err)
	}
	f := p.Meta.Approval
	return &Question{
		Message: p.Message, Thread: cmp.Or(f.ThreadID, p.ThreadID), Kind: f.Kind, Command: f.Command, Cwd: f.Cwd,
		Words: wordsOf(f.Command), Form: json.RawMessage(p.RequestedSchema), Params: params,
	}, nil
}

// wordsOf returns the words of one plain command, and nil for any other: a shell that decide cannot see through may run
// anything.
func wordsOf(argv []string) []string {
	words := decide.Written(argv)
	if len(words) == 0 || decide.LooksLikeShell(words[0]) {
		return nil
	}
	return words
}

// callOf returns the id of the request that a question belongs to.
func callOf(params json.RawMessage) string {
	var p struct {
		Call string `json:"codex_mcp_tool_call_id"`
	}
	_ = jsonv2.Unmarshal(params, &p) // "" is no call
	return p.Call
}

// asker returns the function that answers questions, or nil.
func (c *Client) asker() func(context.Context, json.RawMessage) (json.RawMessage, error) {
	if c.o.AskRaw == nil && c.o.Ask == nil {
		return nil
	}
	return func(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
		q, err := newQuestion(params)
		switch {
		case err != nil:
			return nil, err
		case c.o.AskRaw != nil:
			return c.o.AskRaw(ctx, q)
		}
		return q.result(c.o.Ask(ctx, q)), nil
	}
}

// result returns the result of elicitation/create for an outcome.
func (q *Question) result(out elicit.Outcome) json.RawMessage {
	var r struct {
		Action  string            `json:"action"`
		Content map[string]string `json:"content,omitzero"`
	}
	switch {
	case out.Decision == elicit.Abort:
		r.Action = "cancel"
	case out.Decision == elicit.Denied, !out.Decision.Valid():
		r.Action = "decline"
		if out.Feedback != "" {
			r.Content = map[string]string{"feedback": out.Feedback}
		}
	default:
		r.Action, r.Content = "accept", map[string]string{}
		if out.Decision != elicit.Approved || q.decides() {
			r.Content["decision"] = string(out.Decision)
		}
	}
	raw, err := jsonv2.Marshal(r, jsontext.AllowInvalidUTF8(true), jsonv2.Deterministic(true))
	if err != nil { // does not happen
		return json.RawMessage(`{"action":"decline"}`)
	}
	return raw
}

// decides reports whether the form has a field for the decision.
func (q *Question) decides() bool {
	var form struct {
		Properties struct {
			Decision jsontext.Value `json:"decision"`
		} `json:"properties"`
	}
	return jsonv2.Unmarshal(q.Form, &form) == nil && form.Properties.Decision != nil
}
