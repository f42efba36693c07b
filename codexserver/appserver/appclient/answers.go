package appclient

import (
	"context"
	stdjson "encoding/json"

	"github.com/codexmcp/codexmcp/codexserver/appserver/apptypes"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/go-json-experiment/json"
)

// Answers answer the questions of the app-server. If a function is nil or returns an error, the
// answer declines. Several questions may be open at a time.
type Answers struct {
	// Command decides whether a command runs.
	Command func(context.Context, *apptypes.CommandApproval) (apptypes.Decision, error)
	// Patch decides whether a patch is applied. Its changes are in the item with the question's
	// ItemID, which a notification has announced.
	Patch func(context.Context, *apptypes.FileApproval) (apptypes.Decision, error)
	// Permissions grants permissions beyond the sandbox.
	Permissions func(context.Context, *apptypes.Permissions) (apptypes.PermissionsReply, error)
	// Input answers questions of the model.
	Input func(context.Context, *apptypes.UserInput) (apptypes.UserInputReply, error)
	// Elicit answers a question of an MCP server, or whether a tool of one may be called.
	Elicit func(context.Context, *apptypes.Elicitation) (apptypes.ElicitationReply, error)
}

// NoPermissions returns the answer that grants nothing.
func NoPermissions() apptypes.PermissionsReply {
	return apptypes.PermissionsReply{Permissions: stdjson.RawMessage(`{}`), Scope: apptypes.PermissionGrantScopeTurn}
}

// Declined returns the answer that declines the question of an MCP server, in the form that all
// versions were tried with.
func Declined() apptypes.ElicitationReply {
	return apptypes.ElicitationReply{Action: apptypes.CommandExecutionApprovalDecisionDecline,
		Content: stdjson.RawMessage("null")}
}

// mux routes the questions.
func (a *Answers) mux() *jsonrpc.Mux {
	m := &jsonrpc.Mux{}
	declined := apptypes.Decision{Decision: apptypes.CommandExecutionApprovalDecisionDecline}
	handle(m, apptypes.AskItemCommandExecutionRequestApproval, a.Command, declined)
	handle(m, apptypes.AskItemFileChangeRequestApproval, a.Patch, declined)
	handle(m, apptypes.AskItemPermissionsRequestApproval, a.Permissions, NoPermissions())
	handle(m, apptypes.AskItemToolRequestUserInput, a.Input,
		apptypes.UserInputReply{Answers: map[string]apptypes.Answers{}})
	handle(m, apptypes.AskMCPServerElicitationRequest, a.Elicit, Declined())
	return m
}

// handle registers a method with which the app-server asks something. It answers with none, which
// allows nothing, unless answer returns without an error.
func handle[P, R any](m *jsonrpc.Mux, method string, answer func(context.Context, *P) (R, error), none R) {
	jsonrpc.Handle(m, method, func(ctx context.Context, p P) (R, error) {
		if answer == nil {
			return none, nil
		}
		r, err := answer(ctx, &p)
		if err != nil || ctx.Err() != nil {
			return none, nil
		}
		return r, nil
	})
}

// serve handles a message of the app-server.
func (c *Client) serve(ctx context.Context, r *jsonrpc.Request) (any, error) {
	if r.IsNotification() {
		c.notification(r)
		return nil, nil
	}
	return c.answers.ServeRPC(ctx, r)
}

// refuse refuses a request that no function of [Answers] is for.
func (c *Client) refuse(_ context.Context, r *jsonrpc.Request) (any, error) {
	if c.first(r.Method) {
		c.log.Warn("codex: a request of a kind that this codexmcp does not answer was refused", "method", r.Method,
			"version", c.Server().Version.String())
	}
	return nil, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "method not found: %s", r.Method)
}

// OnlyCommand reports whether a question asks for nothing but to run its command in its folder on
// this machine: no host, no further permissions, no input to a running command, and nothing that
// this package does not know. It is for clients that show command and folder only.
func OnlyCommand(q *apptypes.CommandApproval) bool {
	if q.Kind != "" && q.Kind != apptypes.CommandExecutionApprovalKindCommand {
		return false
	}
	var unknown map[string]any
	if len(q.Unknown) > 0 && json.Unmarshal(q.Unknown, &unknown) != nil {
		return false
	}
	for _, value := range unknown {
		if value != nil {
			return false
		}
	}
	local := isNull(q.EnvironmentID) || string(q.EnvironmentID) == `"local"`
	return q.Command != "" && q.NetworkApprovalContext == nil && local && isNull(q.AdditionalPermissions)
}

// isNull reports whether a member is missing or null.
func isNull(raw stdjson.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }
