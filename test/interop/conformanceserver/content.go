package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes/modern"
	jsonv2 "github.com/go-json-experiment/json"
)

// The smallest picture and the smallest sound.
const (
	png = modern.Base64("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
	wav = modern.Base64("UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=")
)

func text(s string) modern.ContentBlock { return &modern.TextContent{Text: s} }

func image() modern.ContentBlock { return &modern.ImageContent{Data: png, MimeType: "image/png"} }

func embedded(uri, mime, content string) modern.ContentBlock {
	return &modern.EmbeddedResource{Resource: &modern.TextResourceContents{URI: uri, MimeType: &mime, Text: content}}
}

// show serves a tool that always returns the same.
func show(blocks ...modern.ContentBlock) func(context.Context, *call) (modern.AnyCallToolResult, error) {
	return func(context.Context, *call) (modern.AnyCallToolResult, error) {
		return &modern.CallToolResult{Meta: identity, Content: blocks}, nil
	}
}

const askingPrompt = "test_input_required_result_prompt"

func listPrompts(context.Context, *modern.PaginatedRequestParams) (*modern.ListPromptsResult, error) {
	needed := func(name string) modern.PromptArgument {
		return modern.PromptArgument{Name: name, Required: new(true)}
	}
	return &modern.ListPromptsResult{
		Meta: identity, CacheScope: modern.CacheScopePublic, TTLMs: ttl.Milliseconds(),
		Prompts: []modern.Prompt{
			{Name: "test_simple_prompt", Description: new("a prompt")},
			{Name: "test_prompt_with_arguments", Description: new("with arguments"),
				Arguments: []modern.PromptArgument{needed("arg1"), needed("arg2")}},
			{Name: "test_prompt_with_embedded_resource", Description: new("with a resource"),
				Arguments: []modern.PromptArgument{needed("resourceUri")}},
			{Name: "test_prompt_with_image", Description: new("with a picture")},
			{Name: askingPrompt, Description: new("asks for its context")},
		},
	}, nil
}

func (s *server) getPrompt(ctx context.Context, p *modern.GetPromptRequestParams) (modern.AnyGetPromptResult, error) {
	var content modern.ContentBlock
	switch p.Name {
	case "test_simple_prompt":
		content = text("a prompt")
	case "test_prompt_with_arguments":
		content = text(p.Arguments["arg1"] + " and " + p.Arguments["arg2"])
	case "test_prompt_with_embedded_resource":
		content = embedded(p.Arguments["resourceUri"], "text/plain", "an embedded text")
	case "test_prompt_with_image":
		content = image()
	case askingPrompt: // prompts can ask too
		c, err := s.newCall(ctx, "prompts/get", p.Name, nil, &p.Meta, p.RequestState)
		if err != nil {
			return nil, err
		}
		out, ok := c.elicit("user_context", form("What context should the prompt use?", "context"))
		if !ok {
			return c.unanswered()
		}
		content = text("In the context of " + out.field("context"))
	default:
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "/name: there is no prompt %q", p.Name)
	}
	return &modern.GetPromptResult{Meta: identity,
		Messages: []modern.PromptMessage{{Role: modern.RoleUser, Content: content}}}, nil
}

// complete offers completions of an argument.
func complete(_ context.Context, p *modern.CompleteRequestParams) (*modern.CompleteResult, error) {
	return &modern.CompleteResult{Meta: identity,
		Completion: modern.CompleteResultCompletion{Values: []string{p.Argument.Value + "ing"}}}, nil
}

func listResources(context.Context, *modern.PaginatedRequestParams) (*modern.ListResourcesResult, error) {
	return &modern.ListResourcesResult{
		Meta: identity, CacheScope: modern.CacheScopePublic, TTLMs: ttl.Milliseconds(),
		Resources: []modern.Resource{
			{Name: "text", Description: new("a text"), URI: "test://static-text", MimeType: new("text/plain")},
			{Name: "picture", Description: new("a picture"), URI: "test://static-binary", MimeType: new("image/png")},
			{Name: skillName, Description: new(skillDescription), URI: skillFile, MimeType: new(markdown)},
		},
	}, nil
}

func listTemplates(context.Context, *modern.PaginatedRequestParams) (*modern.ListResourceTemplatesResult, error) {
	return &modern.ListResourceTemplatesResult{
		Meta: identity, CacheScope: modern.CacheScopePublic, TTLMs: ttl.Milliseconds(),
		ResourceTemplates: []modern.ResourceTemplate{{Name: "data", Description: new("data by an id"),
			URITemplate: "test://template/{id}/data"}},
	}, nil
}

func readResource(_ context.Context, p *modern.ReadResourceRequestParams) (modern.AnyReadResourceResult, error) {
	var contents modern.TextOrBlobResourceContents
	id, isTemplate := strings.CutPrefix(p.URI, "test://template/")
	switch {
	case isTemplate:
		id = strings.TrimSuffix(id, "/data")
		contents = &modern.TextResourceContents{URI: p.URI, MimeType: new("application/json"),
			Text: fmt.Sprintf(`{"id":%q}`, id)}
	case p.URI == "test://static-text":
		contents = &modern.TextResourceContents{URI: p.URI, MimeType: new("text/plain"), Text: "a text"}
	case p.URI == "test://static-binary":
		contents = &modern.BlobResourceContents{URI: p.URI, MimeType: new("image/png"), Blob: png}
	case skillFiles[p.URI] != "":
		contents = &modern.TextResourceContents{URI: p.URI, MimeType: new(markdown), Text: skillFiles[p.URI]}
	default:
		data, err := jsonv2.Marshal(map[string]string{"uri": p.URI})
		if err != nil {
			return nil, err
		}
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "/uri: there is no such resource",
			Data: data}
	}
	return &modern.ReadResourceResult{
		Meta: identity, CacheScope: modern.CacheScopePublic, TTLMs: ttl.Milliseconds(),
		Contents: []modern.TextOrBlobResourceContents{contents},
	}, nil
}
