package mcp

import (
	"errors"

	"github.com/codexmcp/codexmcp/codexserver/internal/mcptool"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes/modern"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// fresh is how long clients may cache content that changes.
const fresh = 0

// noCursor refuses a cursor, because the lists have only one page.
func noCursor(r *jsonrpc.Request) error {
	if len(r.Params) == 0 { // only with a handshake
		return nil
	}
	m, err := members("", jsontext.Value(r.Params))
	if err != nil {
		return err
	}
	if _, ok := m["cursor"]; ok {
		return Invalid("/cursor", "no list has a second page")
	}
	return nil
}

func (s *ModernSession) listResources(q *request) (any, error) {
	if err := noCursor(q.rpc); err != nil {
		return nil, err
	}
	result := &modern.ListResourcesResult{Meta: s.resultMeta(), Resources: []modern.Resource{}, TTLMs: fresh, CacheScope: modern.CacheScopePrivate}
	for _, r := range s.client.server.Tools.Resources().List(s.client.threads) {
		result.Resources = append(result.Resources, modern.Resource{Name: r.Name, Description: r.Description, MimeType: r.MimeType, URI: r.URI})
	}
	return result, nil
}

func (s *ModernSession) listTemplates(q *request) (any, error) {
	if err := noCursor(q.rpc); err != nil {
		return nil, err
	}
	result := &modern.ListResourceTemplatesResult{Meta: s.resultMeta(), TTLMs: listLife, CacheScope: modern.CacheScopePrivate}
	for _, t := range s.client.server.Tools.Resources().Templates() {
		result.ResourceTemplates = append(result.ResourceTemplates, modern.ResourceTemplate{
			Name: t.Name, Description: t.Description, MimeType: t.MimeType, URITemplate: t.URITemplate,
		})
	}
	return result, nil
}

func (s *ModernSession) readResource(q *request) (any, error) {
	uri, err := uriOf(q.rpc)
	if err != nil {
		return nil, err
	}
	contents, err := s.client.server.Tools.Resources().Read(q.ctx, s.client.threads, uri)
	var none *mcptool.NoResourceError
	if errors.As(err, &none) {
		return nil, noResource(uri, none)
	}
	if err != nil {
		return nil, err
	}
	result := &modern.ReadResourceResult{Meta: s.resultMeta(), TTLMs: fresh, CacheScope: modern.CacheScopePrivate}
	for _, c := range contents {
		result.Contents = append(result.Contents, &modern.TextResourceContents{Meta: metaObject(c.Meta), MimeType: c.MimeType, Text: c.Text, URI: c.URI})
	}
	return result, nil
}

// uriOf returns the member uri of params.
func uriOf(r *jsonrpc.Request) (uri string, err error) {
	m, err := members("", jsontext.Value(r.Params))
	if err != nil {
		return "", err
	}
	if raw, ok := m["uri"]; !ok {
		return "", Invalid("/uri", "missing")
	} else if raw.Kind() != '"' || json.Unmarshal(raw, &uri) != nil {
		return "", Invalid("/uri", "want a string")
	}
	return uri, nil
}

// noResource returns the error for a resource that does not exist.
func noResource(uri string, why *mcptool.NoResourceError) error {
	e := jsonrpc.Errorf(modern.CodeInvalidParams, "params/uri: %s", why.Reason)
	e.Data, _ = json.Marshal(map[string]string{"path": "/uri", "uri": uri}, json.Deterministic(true), jsontext.AllowInvalidUTF8(true)) // strings always encode
	return e
}
