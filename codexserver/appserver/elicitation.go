package appserver

import (
	stdjson "encoding/json"
	"fmt"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/appserver/appclient"
	"github.com/codexmcp/codexmcp/codexserver/appserver/apptypes"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/plain"
	"github.com/codexmcp/codexmcp/internal/slots"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// elicitation asks a question of one of Codex's MCP servers, or whether a tool of one may be called.
func (a *question) elicitation(p *apptypes.Elicitation) (reply apptypes.ElicitationReply, err error) {
	var f *approval.Foreign
	q, err := toolQuestion(p)
	if err == nil && q == nil {
		f, err = serverQuestion(p)
	}
	if err != nil {
		return reply, err
	}
	err = a.queued("server "+p.ServerName, func() error {
		if q == nil {
			result, err := a.turn.host.Elicit(a.ctx, f)
			reply = answered(result)
			return err
		}
		tool, _ := q.Meta["tool_name"].(string)
		a.turn.toolAsked(p, tool, "")
		out := a.turn.host.Ask(a.ctx, approval.Other{Ask: q})
		if reply.Action = a.decided("the call of a tool", out); reply.Action == accept {
			reply.Content = stdjson.RawMessage(`{}`)
		}
		a.turn.toolAsked(p, tool, reply.Action)
		return nil
	})
	if err != nil {
		return reply, err
	}
	if a.ctx.Err() != nil {
		reply = apptypes.ElicitationReply{Action: cancelTurn}
	}
	if reply.Content == nil {
		reply.Content = stdjson.RawMessage("null") // all versions were tried with it
	}
	return reply, nil
}

// maxQueue is how many questions of a party may wait for the one that is asked.
const maxQueue = 32

// queued asks while no other question of a party, an MCP server or the model, is asked in the thread.
func (a *question) queued(party string, ask func() error) error {
	queue, _ := a.turn.thread.asking.LoadOrStore(party, slots.NewQueue(maxQueue))
	leave, err := queue.(*slots.Queue).Take(a.ctx)
	if err != nil {
		return err
	}
	defer leave()
	return ask()
}

// userInput asks the model's questions to the user.
func (a *question) userInput(p *apptypes.UserInput) (reply apptypes.UserInputReply, err error) {
	f, err := modelQuestion(p)
	if err != nil {
		return reply, err
	}
	err = a.queued("model", func() error {
		result, err := a.turn.host.Elicit(a.ctx, f)
		reply = modelAnswers(p, result)
		return err
	})
	return reply, err
}

// serverOf returns the name of the server for people, with the environment that it belongs to if that
// is another one than this machine.
func serverOf(e *apptypes.Elicitation) string {
	if env := environment(e.EnvironmentID); env != "" {
		return e.ServerName + " of the environment " + env
	}
	return e.ServerName
}

// maxToolParams bounds the arguments of a tool in _meta, in bytes.
const maxToolParams = 64 << 10

// toolQuestion returns the question about the call of an MCP tool, nil for another question of a server. The first line is ours: the
// server could have sent the question itself, with the _meta by which Codex marks its own. The
// message shows the call's arguments: Codex sends them only in _meta, which most clients do not
// show. Of _meta the client gets the members that it needs.
func toolQuestion(e *apptypes.Elicitation) (*elicit.Question, error) {
	var meta struct {
		Tool   string         `json:"tool_name"`
		Params jsontext.Value `json:"tool_params"`
	}
	kind, _ := lenient[map[string]any](e.Meta)["codex_approval_kind"].(string)
	if kind == "" {
		return nil, nil
	}
	if err := json.Unmarshal(e.Meta, &meta); err != nil {
		return nil, fmt.Errorf("_meta: %w", err)
	}
	server := elicit.ShowName(serverOf(e))
	lines := []string{fmt.Sprintf("Allow Codex what the MCP server %s asks, outside the sandbox?", server)}
	first, text := "Outside the sandbox, what an MCP server asks:", serverOf(e)
	q := &elicit.Question{Once: true, NotDone: "the tool was not called",
		Meta: map[string]any{"codex_approval_kind": kind}}
	if meta.Tool != "" {
		lines[0] = fmt.Sprintf("Allow Codex to call the tool %s of the MCP server %s, outside the sandbox?",
			elicit.ShowName(meta.Tool), server)
		first, text = "Outside the sandbox, a tool of an MCP server:", text+"/"+meta.Tool
		q.Meta["tool_name"] = plain.OneLine(meta.Tool, maxToolName)
	}
	if e.Message != toolMessage(e.ServerName, meta.Tool) {
		lines = append(lines, approval.ShowLines(server, e.Message)...)
	}
	also := lines[1:]
	if params := meta.Params; len(params) > 0 && string(params) != "{}" && string(params) != "null" {
		shown, _ := elicit.ShowCode(string(params))
		lines, text = append(lines, "Its arguments: "+shown), text+" "+string(params)
	}
	if n := len(meta.Params); n > 0 && n <= maxToolParams {
		q.Meta["tool_params"] = meta.Params
	}
	if more := unknown(e.Unknown); more != "" {
		lines, also = append(lines, elicit.ShowText(more)), append(also[:len(also):len(also)], more)
	}
	q.Message, q.Brief = strings.Join(lines, "\n"), approval.Brief(first, text, also...)
	return q, nil
}

// maxToolName bounds the name of a tool in _meta, in characters.
const maxToolName = 200

// serverQuestion returns the question as one of the MCP server. Modes that only Codex knows are an error.
func serverQuestion(e *apptypes.Elicitation) (*approval.Foreign, error) {
	params := map[string]any{"message": e.Message, "requestedSchema": e.RequestedSchema}
	if e.Mode != "" {
		params["mode"] = e.Mode
	}
	raw, err := json.Marshal(params)
	if err != nil {
		return nil, err
	}
	return approval.ServerQuestion(serverOf(e), raw)
}

// answered reads the client's answer to a forwarded elicitation. An invalid answer
// declines.
func answered(result stdjson.RawMessage) apptypes.ElicitationReply {
	switch r := lenient[apptypes.ElicitationReply](result); r.Action {
	case accept:
		return r
	case cancelTurn:
		return apptypes.ElicitationReply{Action: cancelTurn}
	}
	return appclient.Declined()
}

// modelQuestion returns the model's questions as one question, whose form has a member for each. A
// question for a secret is an error, because MCP forbids asking for one.
func modelQuestion(u *apptypes.UserInput) (*approval.Foreign, error) {
	properties, required := map[string]any{}, []string{}
	var message []string
	for _, q := range u.Questions {
		if q.IsSecret {
			return nil, fmt.Errorf("question %q asks for a secret", q.ID)
		}
		if more := unknown(q.Unknown); more != "" { // it might say that the answer is secret
			return nil, fmt.Errorf("question %q: %s", q.ID, more)
		}
		p := map[string]any{"type": "string", "title": q.Header, "description": q.Question}
		var labels, shown []string
		for _, o := range q.Options {
			labels = append(labels, o.Label)
			shown = append(shown, o.Label+" ("+o.Description+")")
		}
		line := q.Question
		if len(labels) > 0 {
			line += " " + strings.Join(shown, ", ")
			if !q.IsOther {
				p["enum"] = labels
			}
		}
		message = append(message, line)
		properties[q.ID] = p
		required = append(required, q.ID)
	}
	if len(properties) == 0 {
		return nil, fmt.Errorf("no questions")
	}
	raw, err := json.Marshal(map[string]any{
		"message": strings.Join(message, "\n"),
		"requestedSchema": map[string]any{
			"type": "object", "properties": properties, "required": required,
		},
	})
	if err != nil {
		return nil, err
	}
	return approval.ModelQuestion(raw)
}

// modelAnswers reads the client's form. If the client did not accept, it returns no answers,
// which the model sees.
func modelAnswers(u *apptypes.UserInput, result stdjson.RawMessage) apptypes.UserInputReply {
	reply := apptypes.UserInputReply{Answers: map[string]apptypes.Answers{}}
	r := lenient[struct {
		Action  string            `json:"action"`
		Content map[string]string `json:"content"`
	}](result)
	for _, q := range u.Questions {
		if a, ok := r.Content[q.ID]; ok && r.Action == accept {
			reply.Answers[q.ID] = apptypes.Answers{Answers: []string{a}}
		}
	}
	return reply
}
