package appserver

import (
	stdjson "encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/appserver/appclient"
	"github.com/codexmcp/codexmcp/codexserver/appserver/apptypes"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// decisionOf returns the answer to the app-server. Every unknown decision declines. An approval
// counts once, also one for the session.
func decisionOf(out elicit.Outcome) string {
	switch out.Decision {
	case elicit.Approved, elicit.ApprovedForSession:
		return accept
	case elicit.Abort:
		return cancelTurn
	}
	return decline
}

// The decisions about commands. Those about patches are the same words: a map with two equal keys
// does not compile.
const (
	accept     = apptypes.CommandExecutionApprovalDecisionAccept
	decline    = apptypes.CommandExecutionApprovalDecisionDecline
	cancelTurn = apptypes.CommandExecutionApprovalDecisionCancel
)

var _ = map[bool]struct{}{false: {}, accept == apptypes.FileChangeApprovalDecisionAccept &&
	decline == apptypes.FileChangeApprovalDecisionDecline && cancelTurn == apptypes.FileChangeApprovalDecisionCancel: {}}

// networkAccess takes the place of a program in a question about a host.
const networkAccess = "network-access"

// execApproval returns the question about a command. Agent is the path of the sub-agent
// that asks; "" for the conversation itself.
func execApproval(p *apptypes.CommandApproval, o *apptypes.Item, agent string) protocol.ExecApprovalRequest {
	r := protocol.ExecApprovalRequest{CallID: p.ItemID, Cwd: p.Cwd, Reason: p.Reason}
	line := p.Command
	if o != nil {
		if line == "" {
			line = o.Command
		}
		if r.Cwd == "" {
			r.Cwd = o.Cwd
		}
	}
	if line != "" {
		r.Command = splitCommand(line)
	}
	var about []string
	if agent != "" {
		about = append(about, "asked by the sub-agent "+agent)
	}
	if p.Kind == apptypes.CommandExecutionApprovalKindWriteStdin {
		about = append(about, "input for a command that is running")
	}
	if e := environment(p.EnvironmentID); e != "" {
		about = append(about, "in the environment "+e+", not on this machine")
	}
	if n := p.NetworkApprovalContext; n != nil {
		about = append(about, fmt.Sprintf("network access to %s by %s", n.Host, n.Protocol))
		if line == "" {
			r.Command = []string{networkAccess, n.Protocol, n.Host}
		}
	}
	if more := unknown(commandUnknown(p)...); more != "" {
		about = append(about, more)
	}
	r.Reason = reason(about, p.Reason)
	r.FromEngine = len(about) > 0 && p.Reason == ""
	return r
}

// localEnvironment is the environment of the app-server's own machine.
const localEnvironment = "local"

// environment returns where a command would run, "" for the app-server's own machine.
func environment(raw stdjson.RawMessage) string {
	var id string
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return ""
	case json.Unmarshal(raw, &id) != nil:
		return string(raw)
	case id == localEnvironment:
		return ""
	}
	return fmt.Sprintf("%q", id)
}

// patchApproval returns the question about a patch.
func patchApproval(p *apptypes.FileApproval, o *apptypes.Item, agent string) protocol.PatchApprovalRequest {
	r := protocol.PatchApprovalRequest{CallID: p.ItemID, Changes: fileChanges(o.Changes), GrantRoot: p.GrantRoot, Once: true}
	var about []string
	if agent != "" {
		about = append(about, "asked by the sub-agent "+agent)
	}
	all := []jsontext.Value{p.Unknown}
	for _, u := range o.Changes {
		all = append(all, u.Unknown, u.Kind.Unknown)
	}
	if more := unknown(all...); more != "" {
		r.Notes = append(r.Notes, more)
	}
	if p.GrantRoot != "" {
		r.Notes = append(r.Notes, "Codex names "+p.GrantRoot+" for later changes, which this approval is not for")
	}
	r.Reason = reason(about, p.Reason)
	return r
}

// commandUnknown returns the unknown members of a question about a command.
func commandUnknown(p *apptypes.CommandApproval) []jsontext.Value {
	all := []jsontext.Value{p.Unknown}
	if p.NetworkApprovalContext != nil {
		all = append(all, p.NetworkApprovalContext.Unknown)
	}
	return all
}

// maxUnknown bounds what is shown of unknown members, in bytes.
const maxUnknown = 300

// unknown returns words about members that newer versions of Codex send with a question and this
// program does not know, or "". Null says nothing.
func unknown(objects ...jsontext.Value) string {
	var names []string
	for _, object := range objects {
		var members map[string]jsontext.Value
		if len(object) > 0 && json.Unmarshal(object, &members) != nil {
			members = map[string]jsontext.Value{"members": object}
		}
		for _, name := range slices.Sorted(maps.Keys(members)) {
			if text := string(members[name]); text != "null" {
				names = append(names, name+" = "+text)
			}
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "Codex also says what this version does not know: " + elicit.OneLine(strings.Join(names, ", "), maxUnknown)
}

// shows returns an error unless a question can show the changes.
func shows(updates []apptypes.FileUpdate) error {
	for _, u := range updates {
		switch u.Kind.Type {
		case apptypes.PatchChangeKindAdd, apptypes.PatchChangeKindDelete, apptypes.PatchChangeKindUpdate:
		default:
			return fmt.Errorf("it changes a file in the unknown way %q", u.Kind.Type)
		}
		if more := unknown(u.Unknown); more != "" && u.Diff == "" {
			return fmt.Errorf("the change of a file has an unknown form: %s", more)
		}
	}
	return nil
}

// reason joins remarks of the bridge and the model's own reason.
func reason(about []string, given string) string {
	if given != "" {
		about = append(about, given)
	}
	return strings.Join(about, "; ")
}

// permissionsQuestion returns the question about permissions beyond the sandbox.
func permissionsQuestion(p *apptypes.Permissions, agent string) *elicit.Question {
	asks := "Codex"
	if agent != "" {
		asks = "Codex's sub-agent " + agent
	}
	q := (&elicit.ExecQuestion{
		Subject: asks,
		Command: []string{"further-permissions", string(p.Permissions)},
		Cwd:     p.Cwd,
		Reason:  p.Reason,
		Notes:   []string{"This is not a command: it grants these permissions to the commands that follow."},
	}).Question()
	q.Once = true
	if e := environment(p.EnvironmentID); e != "" {
		q.Brief = nil // made from the message
		q.Message += "\n" + elicit.ShowText("in the environment "+e+", not on this machine")
	}
	if more := unknown(p.Unknown); more != "" {
		q.Brief = nil
		q.Message += "\n" + elicit.ShowText(more)
	}
	if len(p.Permissions) > 0 {
		q.Meta = map[string]any{"permissions": jsontext.Value(p.Permissions)} // whole
	}
	return q
}

func permissionsAnswer(p *apptypes.Permissions, out elicit.Outcome) apptypes.PermissionsReply {
	switch out.Decision {
	case elicit.Approved, elicit.ApprovedForSession:
		return apptypes.PermissionsReply{Permissions: p.Permissions, Scope: apptypes.PermissionGrantScopeTurn}
	}
	return appclient.NoPermissions()
}

// elicitation are the params of mcpServer/elicitation/request: a question of one of Codex's MCP
// servers, or of Codex about a call of one of their tools.
type elicitation apptypes.Elicitation

// toolCall reports whether the elicitation asks to approve the call of an MCP tool.
func (e *elicitation) toolCall() bool {
	var meta struct {
		Kind string `json:"codex_approval_kind"`
	}
	return len(e.Meta) > 0 && json.Unmarshal(e.Meta, &meta) == nil && meta.Kind != ""
}

// server returns the name of the server for people, with the environment that it belongs to if that
// is another one than this machine.
func (e *elicitation) server() string {
	if env := environment(e.EnvironmentID); env != "" {
		return e.ServerName + " of the environment " + env
	}
	return e.ServerName
}

// maxToolParams bounds the arguments of a tool in _meta, in bytes.
const maxToolParams = 64 << 10

// toolQuestion returns the question about the call of an MCP tool. The first line is ours: the
// server could have sent the question itself, with the _meta by which Codex marks its own. The
// message shows the call's arguments: Codex sends them only in _meta, which most clients do not
// show. Of _meta the client gets the members that it needs.
func (e *elicitation) toolQuestion() (*elicit.Question, error) {
	var meta struct {
		Kind   stdjson.RawMessage `json:"codex_approval_kind"`
		Tool   string             `json:"tool_name"`
		Params jsontext.Value     `json:"tool_params"`
	}
	if err := json.Unmarshal(e.Meta, &meta); err != nil {
		return nil, fmt.Errorf("_meta: %w", err)
	}
	server := elicit.ShowName(e.server())
	lines := []string{fmt.Sprintf("Allow Codex what the MCP server %s asks?", server)}
	q := &elicit.Question{Once: true, NotDone: "the tool was not called", Meta: map[string]any{"codex_approval_kind": meta.Kind}}
	if meta.Tool != "" {
		lines[0] = fmt.Sprintf("Allow Codex to call the tool %s of the MCP server %s?", elicit.ShowName(meta.Tool), server)
		q.Meta["tool_name"] = elicit.OneLine(meta.Tool, maxToolName)
	}
	if e.Message != fmt.Sprintf(`Allow the %s MCP server to run tool "%s"?`, e.ServerName, meta.Tool) {
		lines = append(lines, elicit.ShowLines(server, e.Message)...)
	}
	if params := meta.Params; len(params) > 0 && string(params) != "{}" && string(params) != "null" {
		shown, _ := elicit.ShowCode(string(params))
		lines = append(lines, "Its arguments: "+shown)
	}
	if n := len(meta.Params); n > 0 && n <= maxToolParams {
		q.Meta["tool_params"] = meta.Params
	}
	if more := unknown(e.Unknown); more != "" {
		lines = append(lines, elicit.ShowText(more))
	}
	q.Message = strings.Join(lines, "\n")
	return q, nil
}

// maxToolName bounds the name of a tool in _meta, in characters.
const maxToolName = 200

func toolAnswer(out elicit.Outcome) apptypes.ElicitationReply {
	switch out.Decision {
	case elicit.Approved, elicit.ApprovedForSession:
		return apptypes.ElicitationReply{Action: apptypes.MCPServerElicitationActionAccept, Content: stdjson.RawMessage(`{}`)}
	case elicit.Abort:
		return apptypes.ElicitationReply{Action: apptypes.MCPServerElicitationActionCancel}
	}
	return appclient.Declined()
}

// foreign returns the question as one of the MCP server. Modes that only Codex knows are an error.
func (e *elicitation) foreign() (*elicit.Foreign, error) {
	params := map[string]any{"message": e.Message, "requestedSchema": e.RequestedSchema}
	if e.Mode != "" {
		params["mode"] = e.Mode
	}
	raw, err := json.Marshal(params)
	if err != nil {
		return nil, err
	}
	return elicit.ServerQuestion(e.server(), raw)
}

// answered reads the client's answer to a forwarded elicitation. An invalid answer
// declines.
func answered(result stdjson.RawMessage) apptypes.ElicitationReply {
	var r apptypes.ElicitationReply
	if json.Unmarshal(result, &r) != nil {
		return appclient.Declined()
	}
	switch r.Action {
	case apptypes.MCPServerElicitationActionAccept:
		return r
	case apptypes.MCPServerElicitationActionCancel:
		return apptypes.ElicitationReply{Action: apptypes.MCPServerElicitationActionCancel}
	}
	return appclient.Declined()
}

// userInput are the params of item/tool/requestUserInput.
type userInput apptypes.UserInput

// foreign returns the model's questions as one question, whose form has a member for each. A
// question for a secret is an error, because MCP forbids asking for one.
func (u *userInput) foreign() (*elicit.Foreign, error) {
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
	return elicit.ModelQuestion(raw)
}

// answers reads the client's form. If the client did not accept, it returns no answers,
// which the model sees.
func (u *userInput) answers(result stdjson.RawMessage) apptypes.UserInputReply {
	reply := apptypes.UserInputReply{Answers: map[string]apptypes.Answers{}}
	var r struct {
		Action  string            `json:"action"`
		Content map[string]string `json:"content"`
	}
	if json.Unmarshal(result, &r) != nil || r.Action != "accept" {
		return reply
	}
	for _, q := range u.Questions {
		if a, ok := r.Content[q.ID]; ok {
			reply.Answers[q.ID] = apptypes.Answers{Answers: []string{a}}
		}
	}
	return reply
}
