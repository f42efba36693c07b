package appserver

import (
	stdjson "encoding/json"
	"maps"

	"github.com/codexmcp/codexmcp/codexserver/appserver/apptypes"
	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/go-json-experiment/json"
)

// Package apptypes has the types of the protocol that are in Codex's schema. Here is what the schema
// does not say: a method that it does not list, and values that have several forms.

// callAuthStatus is a method that Codex answers although its schema does not list it.
const callAuthStatus = "getAuthStatus"

// The words of September 2025 are sent as they are. A map with two equal keys does not compile.
var _ = map[bool]struct{}{false: {}, apptypes.SandboxModeReadOnly == string(protocol.SandboxReadOnly) &&
	apptypes.SandboxModeWorkspaceWrite == string(protocol.SandboxWorkspaceWrite) &&
	apptypes.SandboxModeDangerFullAccess == string(protocol.SandboxDangerFullAccess) &&
	apptypes.AskForApprovalUntrusted == string(protocol.ApprovalUntrusted) &&
	apptypes.AskForApprovalOnRequest == string(protocol.ApprovalOnRequest) &&
	apptypes.AskForApprovalNever == string(protocol.ApprovalNever): {}}

// threadParams are those of thread/start and thread/resume.
type threadParams struct {
	apptypes.ThreadParams

	readOnly bool      // fail unless Codex reports that the thread is read-only
	chosen   bool      // the call of a resumed thread chooses the sandbox or the policy
	now      box.Grant // what each turn gets
	base     box.Grant // without the call
}

// byUser is the reviewer of approvals that asks.
const byUser = "user"

// set adds keys to the configuration of the thread. That of another one may share the map.
func (p *threadParams) set(keys map[string]any) error {
	if len(keys) == 0 {
		return nil
	}
	p.Config = maps.Clone(p.Config)
	if p.Config == nil {
		p.Config = map[string]stdjson.RawMessage{}
	}
	for key, value := range keys {
		raw, err := json.Marshal(value)
		if err != nil {
			return configErrorf("%s: %w", key, err)
		}
		p.Config[key] = raw
	}
	return nil
}

// threadReply answers thread/start and thread/resume with the settings of the thread.
type threadReply apptypes.ThreadReply
