// Registers a device and sends a message through the client that openapi-generator has made.
package main

import (
	"context"
	"fmt"
	"os"

	client "github.com/GIT_USER_ID/GIT_REPO_ID"
)

func main() {
	configuration := client.NewConfiguration()
	configuration.Servers = client.ServerConfigurations{{URL: os.Getenv("STENTOR_URL")}}
	api := client.NewAPIClient(configuration)
	key := context.WithValue(context.Background(), client.ContextAccessToken, os.Getenv("STENTOR_KEY"))

	device := client.NewDeviceRegistration(client.ANDROID, "token-of-go")
	device.SetUser("maria")
	device.SetTimeZone("Europe/Rome")
	registered, _, err := api.DevicesAPI.DevicesRegister(key).DeviceRegistration(*device).Execute()
	check(err)

	target := client.TargetUserAsTarget(client.NewTargetUser("maria"))
	message := client.NewMessageRequest(target)
	message.SetData(map[string]string{"from": "go"})
	sent, _, err := api.MessagesAPI.MessagesSend(key).MessageRequest(*message).Execute()
	check(err)
	fmt.Println(registered.Id, sent.Id)
}

func check(err error) {
	if err != nil {
		if refused, is := err.(*client.GenericOpenAPIError); is {
			fmt.Println(string(refused.Body()))
		}
		panic(err)
	}
}
