package model

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/go-json-experiment/json"
)

// Limits of a provider's list.
const (
	maxModelList     = 2 << 20 // bytes
	modelListTimeout = 10 * time.Second
)

// Models returns the names of the models that the provider lists, in its order. It fails
// after 10 seconds.
func (c *Client) Models(ctx context.Context) ([]string, error) {
	ctx, stop := context.WithTimeoutCause(ctx, modelListTimeout, fmt.Errorf("no answer within %v", modelListTimeout))
	defer stop()
	names, err := c.models(ctx)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return names, err
}

func (c *Client) models(ctx context.Context) ([]string, error) {
	target, err := c.target("/models")
	if err != nil {
		return nil, err
	}
	hr, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("base_url: %w", err)
	}
	if err := c.setHeaders(hr.Header, modelsWire{}, &Request{}); err != nil {
		return nil, err
	}
	hr.Header.Set("Accept", "application/json")
	hr.Header.Del("Content-Type")
	resp, err := staying(c.HTTP).Do(hr)
	if err != nil {
		return nil, connectErr(target, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)) // a part is enough
		return nil, c.statusError(resp, text)
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxModelList+1))
	if err != nil {
		return nil, connectErr(target, err)
	}
	if len(text) > maxModelList {
		return nil, fmt.Errorf("its list of models has more than %d bytes", maxModelList)
	}
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if json.Unmarshal(text, &list, lenient) != nil {
		return nil, errors.New("its list of models cannot be read")
	}
	var names []string
	for _, m := range list.Data {
		if m.ID != "" {
			names = append(names, m.ID)
		}
	}
	return names, nil
}

// modelsWire adds no headers: a list of models belongs to neither wire.
type modelsWire struct{ chatWire }

func (modelsWire) headers(http.Header, *Request) {}
