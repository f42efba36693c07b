package model

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Limits of a provider's list.
const (
	maxModelList     = 2 << 20 // bytes
	modelListTimeout = 10 * time.Second
)

// ListEntry is a model in the list of a provider.
type ListEntry struct {
	Name string
	// Window is the context window in tokens, or 0 if the provider does not say.
	Window int64
	// AnyName is true if a server with this model alone takes any name for it.
	AnyName bool
}

// errNoList reports an answer that is no list.
var errNoList = errors.New("its list of models cannot be read")

// Models returns the models that the provider lists, in its order. It fails after 10
// seconds.
func (c *Client) Models(ctx context.Context) ([]ListEntry, error) {
	ctx, stop := context.WithTimeoutCause(ctx, modelListTimeout, fmt.Errorf("no answer within %v", modelListTimeout))
	defer stop()
	target, err := c.target("/models")
	if err != nil {
		return nil, err
	}
	list, err := c.models(ctx, target)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return list, err
}

// Window returns the context window of a model as the provider's list has it, in tokens, or
// 0. Of a server with only one model it returns that one's, because such servers ignore the
// name.
func (c *Client) Window(ctx context.Context, name string) int64 {
	target, err := c.target("/models")
	if err != nil {
		return 0
	}
	list, _ := c.models(ctx, target) // without a list the window is unknown
	if window := windowOf(list, name); window > 0 || len(list) == 0 {
		return window
	}
	// LM Studio has the window only in a list of its own.
	base, ok := strings.CutSuffix(target.Path, "/v1/models")
	if !ok {
		return 0
	}
	target.Path = base + "/api/v0/models"
	list, _ = c.models(ctx, target)
	return windowOf(list, name)
}

func windowOf(list []ListEntry, name string) int64 {
	if len(list) == 1 {
		return list[0].Window
	}
	for _, m := range list {
		if m.Name == name {
			return m.Window
		}
	}
	return 0
}

func (c *Client) models(ctx context.Context, target *url.URL) ([]ListEntry, error) {
	text, err := c.get(ctx, target)
	switch {
	case err != nil:
		return nil, err
	case len(text) > maxModelList:
		return nil, fmt.Errorf("%w: it has more than %d bytes", errNoList, maxModelList)
	case strings.HasPrefix(strings.TrimSpace(string(text)), "<"):
		return nil, c.refused(0, nil, text)
	}
	var list struct {
		Data []wireEntry `json:"data"`
	}
	if json.Unmarshal(text, &list, lenient) != nil {
		return nil, errNoList
	}
	var models []ListEntry
	for _, m := range list.Data {
		if m.ID != "" {
			models = append(models, ListEntry{Name: m.ID, Window: m.window(), AnyName: textOf(m.OwnedBy) == "llamacpp"})
		}
	}
	return models, nil
}

// wireEntry is a model in a list, with the members in which servers state its window.
type wireEntry struct {
	ID      string         `json:"id"`
	OwnedBy jsontext.Value `json:"owned_by"`
	Meta    struct {
		NCtx jsontext.Value `json:"n_ctx"` // llama.cpp: of a slot
	} `json:"meta"`
	LoadedContextLength jsontext.Value `json:"loaded_context_length"` // LM Studio
	MaxModelLen         jsontext.Value `json:"max_model_len"`         // vLLM
	ContextLength       jsontext.Value `json:"context_length"`        // OpenRouter
	ContextWindow       jsontext.Value `json:"context_window"`        // Groq
	MaxContextLength    jsontext.Value `json:"max_context_length"`    // Mistral; in LM Studio not what is loaded
	State               jsontext.Value `json:"state"`                 // LM Studio
}

func (m *wireEntry) window() int64 {
	for _, raw := range []jsontext.Value{m.Meta.NCtx, m.LoadedContextLength, m.MaxModelLen, m.ContextLength, m.ContextWindow} {
		if n := tokensOf(raw); n > 0 {
			return n
		}
	}
	if len(m.State) > 0 {
		return 0
	}
	return tokensOf(m.MaxContextLength)
}

// tokensOf returns a whole number in JSON, or 0 for anything else.
func tokensOf(raw jsontext.Value) int64 {
	n, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// modelsWire adds no headers: a list of models belongs to neither wire.
type modelsWire struct{ chatWire }

func (modelsWire) headers(http.Header, *Request) {}
