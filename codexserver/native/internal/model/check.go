package model

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/internal/text"
)

// checkTimeout bounds [Client.Check].
const checkTimeout = 5 * time.Second

// silent are the statuses of a refusal of the list that say nothing about the key: there is no list, or the key
// may only send requests to models.
var silent = []int{
	http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound,
	http.StatusMethodNotAllowed,
}

// Check returns why no turn can run with a model, and what to do about it, or nil: the provider does
// not answer, it refuses the key, or it does not have the model. It costs nothing: it requests the
// list of models, and sends the key with a request that has neither a model nor a message, because
// some providers show their list to everybody. What the provider does not say, such as by 404 for a
// list, is no reason. It waits 5 seconds at most.
func (c *Client) Check(ctx context.Context, name string) error {
	target, err := c.target("/models")
	if err != nil {
		return err
	}
	if err := c.printKey(ctx, false); err != nil {
		return err
	}
	var now phase
	ctx, stop := context.WithTimeout(now.trace(ctx), checkTimeout)
	defer stop()
	list, err := c.models(ctx, target)
	status, answered := errors.AsType[*ProviderError](err)
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return c.silence(&now, checkTimeout, target)
	case answered && status.Again:
		return fmt.Errorf("the provider answered %s", status.answer())
	case answered && refusesKey(status):
		return c.keyError(status)
	case answered && slices.Contains(silent, status.Status):
	case answered && status.Status == http.StatusProxyAuthRequired: // without TLS the proxy itself answers
		return c.connectErr(&http.Request{URL: target}, &proxyError{status.Status})
	case answered && status.Status != http.StatusOK:
		return errors.New(strings.TrimSuffix("the provider answered "+statusLine(status.Status)+": "+status.words(),
			": "))
	case err != nil && !errors.Is(err, errNoList):
		return err
	}
	if err := c.tryKey(ctx); err != nil || c.has(ctx, list, name) {
		return err
	}
	var names []string
	for _, m := range list {
		names = append(names, m.Name)
	}
	meant := ""
	if near := text.Nearest(name, slices.Values(names)); near != "" {
		meant = "; do you mean " + near + "?"
	}
	return fmt.Errorf("the provider does not list the model %q: choose one of its models%s", name, meant)
}

// refusesKey reports whether a refusal is about the key, and not only about the list. Gemini refuses a
// key with status 400.
func refusesKey(e *ProviderError) bool {
	switch e.Status {
	case http.StatusBadRequest:
		return badKey.said(e.Words)
	case http.StatusUnauthorized, http.StatusForbidden:
		return !noScope.said(e.Words)
	}
	return false
}

// keyless reports whether the provider gets no key.
func (c *Client) keyless() bool {
	key, err := c.key()
	return key == "" && err == nil && len(c.Provider.HTTPHeaders)+len(c.Provider.EnvHTTPHeaders) == 0
}

// tryKey sends the key with a request that the provider refuses in any case, and returns an error if it
// refuses the key.
func (c *Client) tryKey(ctx context.Context) error {
	if c.keyless() {
		return nil
	}
	a := &attempt{client: c, wire: c.wire(form{}), req: &Request{}, begun: true,
		body: func() ([]byte, error) { return []byte("{}"), nil }}
	target, err := c.target(a.wire.path())
	if err != nil {
		return err
	}
	resp, err := c.send(ctx, target, a)
	if err == nil {
		return resp.Body.Close()
	}
	said, ok := errors.AsType[*ProviderError](err)
	if ok && (said.Status == http.StatusUnauthorized || said.Status == http.StatusForbidden || refusesKey(said)) {
		return c.keyError(said)
	}
	return c.Ready()
}

// keyError says that the provider refuses the key, or wants one.
func (c *Client) keyError(e *ProviderError) error {
	what := "refuses the key"
	if c.keyless() {
		what = "wants a key"
	}
	return fmt.Errorf("the provider %s (%s: %s): %s", what, statusLine(e.Status), e.words(),
		c.hint(http.StatusUnauthorized))
}

// words returns the provider's words for people, in one line.
func (e *ProviderError) words() string {
	return text.Brief(strings.Join(strings.Fields(strings.Join(refusalOf([]byte(e.Words)).words, ": ")), " "), 200)
}

// has reports whether a provider with a list of models has one, as far as it says.
func (c *Client) has(ctx context.Context, list []ListEntry, name string) bool {
	target, err := c.target("/models/" + url.PathEscape(name))
	// Azure wants the names of deployments
	if err != nil || len(list) == 0 || list[0].AnyName && len(list) == 1 ||
		strings.HasSuffix(target.Hostname(), ".azure.com") {
		return true
	}
	family, _, _ := strings.Cut(name, ":") // such as OpenRouter's :online
	name = strings.TrimPrefix(name, "models/")
	for _, m := range list {
		// Gemini, Ollama
		if one := strings.TrimPrefix(m.Name, "models/"); one == name || one == name+":latest" || one == family {
			return true
		}
	}
	// Some aliases are in no list.
	one, err := c.get(ctx, target)
	said, answered := errors.AsType[*ProviderError](err)
	return one.at("id").has() || err != nil && !errors.Is(err, errNoList) && (!answered || said.Again)
}
