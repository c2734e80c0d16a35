// Reads each compose file that is named by the unmodified loader of Docker Compose, which knows the schema and refuses what it does not
// know, and prints one JSON line about each.
package main

import (
	"context"
	"encoding/json"
	"os"

	"github.com/compose-spec/compose-go/v2/cli"
)

type service struct {
	Image  string   `json:"image"`
	Needs  []string `json:"needs"`
	Mounts []string `json:"mounts"`
}

type found struct {
	File     string             `json:"file"`
	Error    string             `json:"error,omitempty"`
	Services map[string]service `json:"services,omitempty"`
	Volumes  []string           `json:"volumes,omitempty"`
}

func read(file string) found {
	options, err := cli.NewProjectOptions([]string{file}, cli.WithInterpolation(true), cli.WithConsistency(true))
	if err != nil {
		return found{File: file, Error: err.Error()}
	}
	project, err := options.LoadProject(context.Background())
	if err != nil {
		return found{File: file, Error: err.Error()}
	}
	services := map[string]service{}
	for name, one := range project.Services {
		mounts := []string{}
		for _, volume := range one.Volumes {
			mounts = append(mounts, volume.Source)
		}
		services[name] = service{Image: one.Image, Needs: one.GetDependencies(), Mounts: mounts}
	}
	return found{File: file, Services: services, Volumes: project.VolumeNames()}
}

func main() {
	out := json.NewEncoder(os.Stdout)
	for _, file := range os.Args[1:] {
		if err := out.Encode(read(file)); err != nil {
			os.Exit(1)
		}
	}
}
