// Package chromium starts the browser of the tests.
package chromium

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/chromedp/chromedp"
)

// Start starts a headless Chromium with an empty profile, and returns the context of its tabs. stop ends it
// and removes what of the profile it lets go.
func Start(ctx context.Context) (browser context.Context, stop func(), err error) {
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		return nil, nil, fmt.Errorf("the browser is needed, as Debian's package chromium has it: %w", err)
	}
	profile, err := os.MkdirTemp("", "chromium")
	if err != nil {
		return nil, nil, err
	}
	allocator, cancel := chromedp.NewExecAllocator(ctx,
		chromedp.ExecPath(chromium),
		chromedp.UserDataDir(profile),
		chromedp.WSURLReadTimeout(time.Minute),
		chromedp.NoFirstRun, chromedp.NoDefaultBrowserCheck, chromedp.NoSandbox, chromedp.DisableGPU, chromedp.Headless,
		chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-sync", true),
		chromedp.Flag("disable-dev-shm-usage", true),
		// Names of other hosts for this machine, to try DNS rebinding.
		chromedp.Flag("host-resolver-rules", "MAP rebound.example 127.0.0.1"),
	)
	browser, end := chromedp.NewContext(allocator)
	stop = func() {
		end()
		cancel()
		os.RemoveAll(profile)
	}
	if err := chromedp.Do(browser); err != nil {
		stop()
		return nil, nil, fmt.Errorf("chromium does not start: %w", err)
	}
	return browser, stop, nil
}
