package gosdk

import (
	"encoding/json"
	"time"

	"github.com/codexmcp/codexmcp/mcptypes/modern"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Extension is the name of the extension.
const Extension = modern.ExtensionTasks

// The methods.
const (
	methodDiscover = "server/discover"
	methodCall     = "tools/call"
	methodGet      = "tasks/get"
	methodUpdate   = "tasks/update"
	methodCancel   = "tasks/cancel"
)

const complete = "complete"

// Status is the state of a task.
type Status = modern.TaskStatus

// about describes a task, as on the wire.
type about struct {
	ID             string `json:"taskId"`
	Status         Status `json:"status"`
	StatusMessage  string `json:"statusMessage,omitempty"`
	CreatedAt      string `json:"createdAt"`
	LastUpdatedAt  string `json:"lastUpdatedAt"`
	TTLMs          *int64 `json:"ttlMs"`
	PollIntervalMs int64  `json:"pollIntervalMs"`
}

// end is how a task has ended.
type end struct {
	Result json.RawMessage `json:"result,omitempty"`
	Error  *failure        `json:"error,omitempty"`
}

type failure struct {
	Code    int64           `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// createResult answers tools/call.
type createResult struct {
	mcp.ResultBase
	ResultType string `json:"resultType"`
	about
}

// getResult answers tasks/get.
type getResult struct {
	mcp.ResultBase
	ResultType string `json:"resultType"`
	about
	InputRequests mcp.InputRequestMap `json:"inputRequests,omitempty"`
	end
}

// emptyResult answers tasks/update and tasks/cancel.
type emptyResult struct {
	mcp.ResultBase
	ResultType string `json:"resultType"`
}

// taskParams are the params of the three methods.
type taskParams struct {
	mcp.ParamsBase
	TaskID         string                     `json:"taskId"`
	InputResponses map[string]json.RawMessage `json:"inputResponses,omitempty"`
}

func stamp() string { return time.Now().UTC().Format(time.RFC3339Nano) }

// Declares reports whether the request's client takes a task as the answer.
func Declares(req *mcp.CallToolRequest) bool { return capabilitiesOf(req.Params.Meta).tasks() }

// capabilities are those that a request declares.
type capabilities struct {
	Elicitation map[string]any            `json:"elicitation"`
	Sampling    map[string]any            `json:"sampling"`
	Roots       map[string]any            `json:"roots"`
	Extensions  map[string]map[string]any `json:"extensions"`
}

// capabilitiesOf returns the capabilities in the metadata of a request: none before 2026-07-28.
func capabilitiesOf(meta mcp.Meta) (c capabilities) {
	if raw, err := json.Marshal(meta[mcp.MetaKeyClientCapabilities]); err == nil {
		_ = json.Unmarshal(raw, &c) // the SDK has read them, too
	}
	return c
}

func (c capabilities) tasks() bool { return c.Extensions[Extension] != nil }

// lacking is the error for a request that does not declare tasks.
func lacking() error {
	data, _ := json.Marshal(map[string]any{ // always encodes
		"requiredCapabilities": map[string]any{"extensions": map[string]any{Extension: struct{}{}}},
	})
	return &jsonrpc.Error{
		Code: mcp.CodeMissingRequiredClientCapabilities, Data: data,
		Message: "the request does not declare the extension " + Extension,
	}
}

func invalid(text string) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: text}
}
