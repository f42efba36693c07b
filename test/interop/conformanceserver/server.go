package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes/modern"
	jsonv2 "github.com/go-json-experiment/json"
)

// server answers requests, of any number of peers.
type server struct {
	methods       jsonrpc.Mux
	rounds        rounds
	tasks         *tasks
	subscriptions *subscriptions
}

func newServer() *server {
	s := &server{tasks: newTasks(), subscriptions: newSubscriptions()}
	modern.ServerDiscover.Handle(&s.methods, discover)
	modern.ToolsList.Handle(&s.methods, listTools)
	modern.ToolsCall.Handle(&s.methods, s.callTool)
	modern.PromptsList.Handle(&s.methods, listPrompts)
	modern.PromptsGet.Handle(&s.methods, s.getPrompt)
	modern.CompletionComplete.Handle(&s.methods, complete)
	modern.ResourcesList.Handle(&s.methods, listResources)
	modern.ResourcesTemplatesList.Handle(&s.methods, listTemplates)
	modern.ResourcesRead.Handle(&s.methods, readResource)
	modern.TasksGet.Handle(&s.methods, s.tasks.get)
	modern.TasksUpdate.Handle(&s.methods, s.tasks.update)
	modern.TasksCancel.Handle(&s.methods, s.tasks.cancel)
	modern.SubscriptionsListen.Handle(&s.methods, s.subscriptions.listen)
	handleSkills(&s.methods)
	return s
}

// close ends the subscriptions and the tasks, and waits for the tasks.
func (s *server) close() {
	close(s.subscriptions.closed)
	s.tasks.close()
}

// ServeRPC implements jsonrpc.Handler. There was no handshake, so each request
// says which version it is of and what its client can do. Earlier requests do not matter.
func (s *server) ServeRPC(ctx context.Context, r *jsonrpc.Request) (any, error) {
	if r.IsNotification() {
		return nil, nil // the peer has cancelled what is to be cancelled
	}
	var p modern.RequestParams
	if err := r.Bind(&p); err != nil {
		return nil, err // invalid params, with the path of what is missing
	}
	if v := *p.Meta.ProtocolVersion; v != modern.ProtocolVersion {
		return nil, failure(modern.CodeUnsupportedProtocolVersion, fmt.Sprintf("version %q is not served", v),
			modern.UnsupportedProtocolVersionData{Requested: v, Supported: versions})
	}
	o := origin{id: r.ID, peer: r.Peer()}
	if raw, ok := p.Extra["inputResponses"]; ok {
		if err := jsonv2.Unmarshal(raw, &o.responses); err != nil {
			return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "/inputResponses: %v", err)
		}
		p.Extra["inputResponses"] = json.RawMessage(`{}`)
		var err error
		if r.Params, err = modern.Encode(p); err != nil {
			return nil, fmt.Errorf("params without responses: %w", err)
		}
	}
	return s.methods.ServeRPC(context.WithValue(ctx, originKey{}, o), r)
}

// origin is what the types of the params do not hold.
type origin struct {
	id jsonrpc.ID
	// peer is who asks, and gets the notifications.
	peer *jsonrpc.Peer
	// responses are the inputResponses as they came. What was not asked may be
	// anything and is ignored, and answers are read from what was sent.
	responses map[string]json.RawMessage
}

type originKey struct{}

func originOf(ctx context.Context) origin {
	o, _ := ctx.Value(originKey{}).(origin)
	return o
}

var versions = []string{modern.ProtocolVersion}

// identity is part of every result.
var identity = &modern.ResultMetaObject{ServerInfo: &modern.Implementation{Name: "conformance", Version: "1"}}

func discover(context.Context, *modern.RequestParams) (*modern.DiscoverResult, error) {
	return &modern.DiscoverResult{
		Meta:              identity,
		SupportedVersions: versions,
		Capabilities: modern.ServerCapabilities{
			Completions: modern.JSONObject{},
			Extensions: map[string]modern.JSONObject{modern.ExtensionTasks: {},
				extensionSkills: {"directoryRead": modern.JSONValue("true")}},
			Logging:   modern.JSONObject{},
			Prompts:   &modern.ServerCapabilitiesPrompts{ListChanged: new(true)},
			Resources: &modern.ServerCapabilitiesResources{},
			Tools:     &modern.ServerCapabilitiesTools{ListChanged: new(true)},
		},
		CacheScope: modern.CacheScopePublic,
		TTLMs:      ttl.Milliseconds(),
	}, nil
}

// lacks refuses a request that does not declare what it needs.
func lacks(capability string, c modern.ClientCapabilities) error {
	return failure(modern.CodeMissingRequiredClientCapability,
		"the request does not declare the capability "+capability,
		modern.MissingRequiredClientCapabilityData{RequiredCapabilities: c})
}

// failure is an error with data.
func failure(code jsonrpc.Code, message string, data any) error {
	raw, err := modern.Encode(data)
	if err != nil {
		return fmt.Errorf("data of error %d: %w", code, err)
	}
	return &jsonrpc.Error{Code: code, Message: message, Data: raw}
}

// needsTasks refuses a request that does not declare the tasks extension.
func needsTasks(c modern.ClientCapabilities) error {
	if c.Extensions[modern.ExtensionTasks] != nil {
		return nil
	}
	return lacks(modern.ExtensionTasks,
		modern.ClientCapabilities{Extensions: map[string]modern.JSONObject{modern.ExtensionTasks: {}}})
}

// arguments decodes the arguments of a call.
func arguments(raw json.RawMessage, into any) error {
	if len(raw) == 0 {
		return nil
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "/arguments: %v", err)
	}
	return nil
}
