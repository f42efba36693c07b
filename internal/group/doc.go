// Package group starts a command so that the processes that it starts can be ended with it: they are a
// process group on Unix, and a job object on Windows.
package group
