package broker

import "fmt"

// The oldest version of NATS that has what the gateway uses: messages with a TTL of their own.
const minMajor, minMinor = 2, 11

// checkVersion fails for a version of the NATS server that is too old, or that cannot be read.
func checkVersion(version string) error {
	var major, minor int
	if _, err := fmt.Sscanf(version, "%d.%d", &major, &minor); err != nil {
		return fmt.Errorf("the NATS server has the version %q, which cannot be read", version)
	}
	if major < minMajor || major == minMajor && minor < minMinor {
		return fmt.Errorf("the NATS server has the version %s; want %d.%d or newer", version, minMajor, minMinor)
	}
	return nil
}
