package model

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
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
	list, err := c.get(ctx, target)
	if err != nil {
		return nil, err
	}
	var models []ListEntry
	for _, m := range list.at("data").all {
		if name := m.at("id").text(); name != "" {
			models = append(models, ListEntry{Name: name, Window: contextOf(m),
				AnyName: m.at("owned_by").text() == "llamacpp"})
		}
	}
	return models, nil
}

// contextOf returns the window that a model in a list has.
func contextOf(m value) int64 {
	windows := []value{
		m.at("meta").at("n_ctx"),      // llama.cpp: of a slot
		m.at("loaded_context_length"), // LM Studio
		m.at("max_model_len"),         // vLLM
		m.at("context_length"),        // OpenRouter
		m.at("context_window"),        // Groq
	}
	if m.at("state").raw == nil { // of LM Studio, where the next is not what is loaded
		windows = append(windows, m.at("max_context_length")) // Mistral
	}
	for _, w := range windows {
		if n, err := strconv.ParseInt(string(w.raw), 10, 64); err == nil && n > 0 {
			return n
		}
	}
	return 0
}

// get returns the object in the answer to a request.
func (c *Client) get(ctx context.Context, target *url.URL) (value, error) {
	if err := c.printKey(ctx, false); err != nil {
		return value{}, err
	}
	resp, err := c.send(ctx, target, nil)
	if err != nil {
		return value{}, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxModelList+1))
	switch {
	case err != nil:
		return value{}, c.connectErr(&http.Request{URL: target}, err)
	case len(text) > maxModelList:
		return value{}, fmt.Errorf("%w: it has more than %d bytes", errNoList, maxModelList)
	case strings.HasPrefix(strings.TrimSpace(string(text)), "<"):
		return value{}, c.refused(0, nil, text)
	}
	if v := parse(text); v.kind() == '{' {
		return v, nil
	}
	return value{}, errNoList
}
