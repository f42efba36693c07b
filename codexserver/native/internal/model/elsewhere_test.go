package model_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/native/internal/model"
)

// TestElsewhere has what providers refuse with: another one is asked only if the request itself is not
// the reason.
func TestElsewhere(t *testing.T) {
	for name, tt := range map[string]struct {
		err   error
		after time.Duration
		ok    bool
	}{
		"a usage limit":        {&model.UsageLimitError{ResetsIn: time.Hour}, time.Hour, true},
		"a limit of the past":  {&model.UsageLimitError{ResetsIn: -time.Hour}, 0, true},
		"wrapped":              {fmt.Errorf("summarising: %w", &model.UsageLimitError{}), 0, true},
		"too many requests":    {&model.RetryLimitError{Code: 429, After: time.Minute}, time.Minute, true},
		"unavailable":          {&model.RetryLimitError{Code: 503}, 0, true},
		"overloaded":           {&model.RetryLimitError{Code: 529}, 0, true},
		"a fault of a server":  {&model.RetryLimitError{Code: 500}, 0, false},
		"no credit":            {&model.StatusError{Code: 402}, 0, true},
		"no quota":             {&model.StatusError{Code: 429}, 0, true},
		"no quota in a stream": {&model.QuotaError{}, 0, true},
		"a refused key":        {&model.StatusError{Code: 401}, 0, true},
		"a wrong request":      {&model.StatusError{Code: 400}, 0, false},
		"forbidden content":    {&model.StatusError{Code: 403}, 0, false},
		"no such model":        {&model.StatusError{Code: 404}, 0, false},
		"busy":                 {&model.StreamError{Busy: true, After: time.Second}, time.Second, true},
		"a broken stream":      {&model.StreamError{}, 0, false},
		"a missing key":        {&model.MissingKeyError{Name: "KEY"}, 0, false},
		"no connection":        {&model.ConnectError{Err: errors.New("refused")}, 0, false},
		"too long":             {model.ErrContextWindow, 0, false},
		"a limit of ours":      {&model.LimitError{}, 0, false},
		"an interrupt":         {errors.New("interrupted"), 0, false},
	} {
		if after, ok := model.Elsewhere(tt.err); ok != tt.ok || ok && after != tt.after {
			t.Errorf("%s: %v, %t, want %v, %t", name, after, ok, tt.after, tt.ok)
		}
	}
}
