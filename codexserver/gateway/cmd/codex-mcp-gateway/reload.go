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

// reloader replaces the users of a service while it runs.
type reloader struct {
	o       *options
	service *service
	stderr  io.Writer
	log     *slog.Logger
}

// on reloads at each signal until stop is called.
func (r *reloader) on(signals <-chan os.Signal) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		for {
			select {
			case <-signals:
			case <-ctx.Done():
				return
			}
			if err := r.reload(ctx); err != nil {
				r.log.Error("the users are not reloaded", "error", err)
			}
		}
	})
	return func() {
		cancel()
		running.Wait()
	}
}

// reload reads the configuration, and replaces the users if all of it is valid.
func (r *reloader) reload(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, operateTimeout)
	defer cancel()
	now, err := r.o.configure(r.log)
	if err != nil {
		return err
	}
	if err := r.service.reload(ctx, now.http.Principals); err != nil {
		return err
	}
	_, err = fmt.Fprintf(r.stderr, "%s: reloaded the users; their number: %d\n", program, len(now.http.Principals))
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
		err = s.node.Reload(ctx, principals, end)
	}
	if err != nil {
		return errors.Join(errors.New("the users are replaced, but a lease could not be given back, and expires"), err)
	}
	return nil
}
