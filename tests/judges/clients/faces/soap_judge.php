<?php
// PHP's SoapClient, unmodified, uses the SOAP face from its description alone: soap_judge.php <url> <key>

[, $url, $key] = $argv;

function want($is, $what)
{
    if (!$is) {
        throw new Exception("not as wanted: " . var_export($what, true));
    }
}

function stories($url, $key, $version, $number)
{
    $client = new SoapClient("$url/soap?wsdl", [
        "soap_version" => $version,
        "login" => "stentor",
        "password" => $key,
        "cache_wsdl" => WSDL_CACHE_NONE,
        "features" => SOAP_SINGLE_ELEMENT_ARRAYS,
    ]);

    $refused = function ($name, $asked) use ($client) {
        try {
            $client->$name($asked);
        } catch (SoapFault $fault) {
            return $fault->detail->Refusal;
        }
        throw new Exception("$name is not refused");
    };

    $device = ["platform" => "android", "provider" => "null", "token" => "phone-$number", "topics" => ["news", "sport"]];
    $registered = $client->RegisterDevice($device)->return;
    want($registered->created === true, $registered);
    $shown = $client->ShowDevice(["device" => $registered->id])->return;
    want($shown->platform === "android" && $shown->state === "active", $shown);
    $topics = $client->ListDeviceTopics(["device" => $registered->id])->return;
    want($topics->topics === ["news", "sport"], $topics);

    $message = [
        "target" => ["topic" => "news"],
        "data" => ["entry" => [["key" => "k", "value" => "v & <w>"]]],
        "ttl_seconds" => 60,
        "idempotency_key" => "once-$number",
    ];
    $sent = $client->SendMessage($message)->return;
    $again = $client->SendMessage($message)->return;
    want($sent->replayed === false && $again->replayed === true, [$sent, $again]);
    want($sent->accepted->id === $again->accepted->id, [$sent, $again]);
    $ledger = $client->ShowMessageLedger(["message" => $sent->accepted->id])->return;
    want($ledger->balanced === true, $ledger);

    $wrong = $refused("RegisterDevice", ["platform" => "vms", "token" => "t"]);
    want($wrong->code === "invalid_field" && $wrong->field === "platform", $wrong);
    $reused = $refused("SendMessage", array_merge($message, ["ttl_seconds" => 61]));
    want($reused->code === "idempotency_key_reused", $reused);
    want($refused("ShowDevice", ["device" => "dev_0000000000009"])->code === "not_found", "not_found");
    $client->RemoveDevice(["device" => $registered->id]);
}

foreach ([SOAP_1_1, SOAP_1_2] as $number => $version) {
    stories($url, $key, $version, $number);
}
echo "PHP ", PHP_VERSION, " is content\n";
