package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/settings"
)

// reloadAt reloads the users of a service at each signal until stop is called.
func (o *options) reloadAt(signals <-chan os.Signal, s *service, stderr io.Writer, log *slog.Logger) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		for {
			select {
			case <-signals:
			case <-ctx.Done():
				return
			}
			if err := o.reload(ctx, s, stderr, log); err != nil {
				log.Error("the users are not reloaded", "error", err)
			}
		}
	})
	return func() {
		cancel()
		running.Wait()
	}
}

// reload reads the configuration, and replaces the users if all of it is valid.
func (o *options) reload(ctx context.Context, s *service, stderr io.Writer, log *slog.Logger) error {
	ctx, cancel := context.WithTimeout(ctx, operateTimeout)
	defer cancel()
	now, err := o.configure(log)
	if err == nil {
		err = s.reload(ctx, now.http.Principals)
	}
	if err == nil {
		_, err = fmt.Fprintf(stderr, "%s: reloaded the users; their number: %d\n", program, len(now.http.Principals))
	}
	return err
}

// reload replaces the users. If one part of the process refuses them, none has changed.
func (s *service) reload(ctx context.Context, principals map[string]settings.Principal) error {
	admit, end := func() {}, func() []string { return nil }
	var err error
	if s.access != nil {
		if admit, err = s.access.Reload(principals); err != nil {
			return err
		}
	}
	if s.pool != nil {
		if end, err = s.pool.Reload(principals); err != nil {
			return err
		}
	}
	admit() // first nothing new of a token that is revoked
	if s.front != nil {
		s.front.Reload(ctx, principals)
	}
	if s.node != nil {
		err = s.node.Reload(ctx, end)
	}
	if err != nil {
		return errors.Join(errors.New("the users are replaced, but a lease could not be given back, and expires"), err)
	}
	return nil
}
