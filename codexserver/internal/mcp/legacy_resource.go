package mcp

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/codexmcp/codexmcp/codexserver/internal/mcptool"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes"
)

// codeNoResource is MCP's code for a resource that does not exist (MCP 2025-06-18,
// server/resources#error-handling).
const codeNoResource = -32002

func (ss *LegacySession) addResourceMethods(m *jsonrpc.Mux) {
	own := &jsonrpc.Mux{}
	mcptypes.ResourcesList.Handle(own, ss.listResources)
	mcptypes.ResourcesTemplatesList.Handle(own, ss.listTemplates)
	mcptypes.ResourcesRead.Handle(own, ss.readResource)
	since := jsonrpc.HandlerFunc(func(ctx context.Context, r *jsonrpc.Request) (any, error) {
		if !ss.hasResources() {
			return nil, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "method %q is served from MCP %s on", r.Method, resourcesSince)
		}
		return own.ServeRPC(ctx, r)
	})
	m.Handle(mcptypes.ResourcesList.Name(), since)
	m.Handle(mcptypes.ResourcesTemplatesList.Name(), since)
	m.Handle(mcptypes.ResourcesRead.Name(), ss.Limited(since))
}

// resourcesSince is the first version of MCP for which the server has resources. The server
// of September 2025, which older clients know, had none.
const resourcesSince = "2025-11-25"

// hasResources reports whether the session's version has resources.
func (ss *LegacySession) hasResources() bool {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.version >= resourcesSince
}

// onePage refuses a cursor, because the lists have only one page.
func onePage(cursor *string) error {
	if cursor == nil {
		return nil
	}
	return Invalid("/cursor", "no list has a second page")
}

func (ss *LegacySession) listResources(_ context.Context, p *mcptypes.ListResourcesRequestParams) (*mcptypes.ListResourcesResult, error) {
	if p != nil {
		if err := onePage(p.Cursor); err != nil {
			return nil, err
		}
	}
	return &mcptypes.ListResourcesResult{Resources: ss.client.server.Tools.Resources().List(ss.client.threads)}, nil
}

func (ss *LegacySession) listTemplates(_ context.Context, p *mcptypes.ListResourceTemplatesRequestParams) (*mcptypes.ListResourceTemplatesResult, error) {
	if p != nil {
		if err := onePage(p.Cursor); err != nil {
			return nil, err
		}
	}
	return &mcptypes.ListResourceTemplatesResult{ResourceTemplates: ss.client.server.Tools.Resources().Templates()}, nil
}

func (ss *LegacySession) readResource(ctx context.Context, p *mcptypes.ReadResourceRequestParams) (*mcptypes.ReadResourceResult, error) {
	contents, err := ss.client.server.Tools.Resources().Read(ctx, ss.client.threads, p.URI)
	var none *mcptool.NoResourceError
	if errors.As(err, &none) {
		e := jsonrpc.Errorf(codeNoResource, "params/uri: %s", none.Reason)
		e.Data, _ = json.Marshal(map[string]string{"uri": mcptool.Cut(p.URI, maxURI)}) // a string always encodes
		return nil, e
	}
	if err != nil {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInternalError, "read a resource: %v", err)
	}
	result := &mcptypes.ReadResourceResult{}
	for _, c := range contents {
		result.Contents = append(result.Contents, c)
	}
	return result, nil
}

// maxURI is how many runes of a URI an error repeats.
const maxURI = 200
