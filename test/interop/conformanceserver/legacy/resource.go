package legacy

import (
	"context"
	"fmt"
	"strings"

	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes"
)

func (f *features) subscribe(uri string, on bool) (*mcptypes.EmptyResult, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.subscribed[uri] == on {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "%q: nothing changes", uri)
	}
	f.subscribed[uri] = on
	return &mcptypes.EmptyResult{}, nil
}

func listResources(context.Context, *mcptypes.ListResourcesRequestParams) (*mcptypes.ListResourcesResult, error) {
	return &mcptypes.ListResourcesResult{Resources: []mcptypes.Resource{
		{URI: "test://static-text", Name: "text", Description: new("a text"), MimeType: new("text/plain")},
		{URI: "test://static-binary", Name: "picture", Description: new("a picture"), MimeType: new("image/png")},
	}}, nil
}

func listTemplates(
	context.Context, *mcptypes.ListResourceTemplatesRequestParams,
) (*mcptypes.ListResourceTemplatesResult, error) {
	return &mcptypes.ListResourceTemplatesResult{ResourceTemplates: []mcptypes.ResourceTemplate{
		{URITemplate: "test://template/{id}/data", Name: "template", MimeType: new("application/json")},
	}}, nil
}

func readResource(_ context.Context, p *mcptypes.ReadResourceRequestParams) (*mcptypes.ReadResourceResult, error) {
	var content mcptypes.TextOrBlobResourceContents
	id, isTemplate := strings.CutPrefix(p.URI, "test://template/")
	switch {
	case isTemplate:
		id = strings.TrimSuffix(id, "/data")
		content = &mcptypes.TextResourceContents{URI: p.URI, MimeType: new("application/json"),
			Text: fmt.Sprintf(`{"id":%q}`, id)}
	case p.URI == "test://static-text":
		content = &mcptypes.TextResourceContents{URI: p.URI, MimeType: new("text/plain"), Text: "a text"}
	case p.URI == "test://static-binary":
		content = &mcptypes.BlobResourceContents{URI: p.URI, MimeType: new("image/png"), Blob: png}
	default:
		return nil, jsonrpc.Errorf(-32002, "no resource %q", p.URI)
	}
	return &mcptypes.ReadResourceResult{Contents: []mcptypes.TextOrBlobResourceContents{content}}, nil
}

func listPrompts(context.Context, *mcptypes.ListPromptsRequestParams) (*mcptypes.ListPromptsResult, error) {
	return &mcptypes.ListPromptsResult{Prompts: []mcptypes.Prompt{
		{Name: "test_simple_prompt", Description: new("a prompt")},
		{Name: "test_prompt_with_arguments", Description: new("with arguments"), Arguments: []mcptypes.PromptArgument{
			{Name: "arg1", Required: new(true)}, {Name: "arg2", Required: new(true)}}},
		{Name: "test_prompt_with_embedded_resource", Description: new("with a resource"),
			Arguments: []mcptypes.PromptArgument{
				{Name: "resourceUri", Required: new(true)}}},
		{Name: "test_prompt_with_image", Description: new("with a picture")},
	}}, nil
}

func getPrompt(_ context.Context, p *mcptypes.GetPromptRequestParams) (*mcptypes.GetPromptResult, error) {
	var content mcptypes.ContentBlock
	switch p.Name {
	case "test_simple_prompt":
		content = text("a prompt")
	case "test_prompt_with_arguments":
		content = text(p.Arguments["arg1"] + " and " + p.Arguments["arg2"])
	case "test_prompt_with_embedded_resource":
		content = embedded(p.Arguments["resourceUri"], "text/plain", "an embedded text")
	case "test_prompt_with_image":
		content = image
	default:
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "no prompt %q", p.Name)
	}
	return &mcptypes.GetPromptResult{Messages: []mcptypes.PromptMessage{{Role: mcptypes.RoleUser, Content: content}}},
		nil
}
