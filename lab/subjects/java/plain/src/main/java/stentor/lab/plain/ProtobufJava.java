package stentor.lab.plain;

import java.util.List;
import stentor.lab.Content;
import stentor.lab.v1.ContentOuterClass;

/** Protocol Buffers by protobuf-java, with classes that protoc makes of stentor-wire's schema. */
final class ProtobufJava implements Codec.Same {
    @Override
    public String contentType() {
        return "application/x-protobuf";
    }

    @Override
    public byte[] write(Content content) {
        ContentOuterClass.Content.Builder message = ContentOuterClass.Content.newBuilder();
        if (content.payload != null) {
            message.setPayload(content.payload);
        } else if (content.numbers != null) {
            message.setNumbers(ContentOuterClass.Numbers.newBuilder().addAllNumbers(content.numbers));
        } else if (content.texts != null) {
            message.setTexts(ContentOuterClass.Texts.newBuilder().addAllTexts(content.texts));
        } else if (content.objects != null) {
            ContentOuterClass.Objects.Builder objects = ContentOuterClass.Objects.newBuilder();
            content.objects.forEach(item ->
                objects.addObjectsBuilder().setId(item.id).setName(item.name).setPrice(item.price));
            message.setObjects(objects);
        } else {
            ContentOuterClass.Points.Builder points = ContentOuterClass.Points.newBuilder();
            for (String[] one : content.points) {
                points.addPointsBuilder().setId(one[0]).setName(one[1]).setCategory(one[2]).setDescription(one[3])
                    .setAddress(one[4]).setCity(one[5]).setCountry(one[6]).setLatitude(one[7]).setLongitude(one[8])
                    .setHours(one[9]).setPhone(one[10]).setWebsite(one[11]).setPicture(one[12]);
            }
            message.setPoints(points);
        }
        return message.build().toByteArray();
    }

    @Override
    public Content read(byte[] bytes) throws Exception {
        ContentOuterClass.Content message = ContentOuterClass.Content.parseFrom(bytes);
        switch (message.getKindCase()) {
            case PAYLOAD: return Content.ofPayload(message.getPayload());
            case NUMBERS: return Content.ofNumbers(message.getNumbers().getNumbersList());
            case TEXTS:
                Content texts = Content.of("texts");
                texts.texts = (List<String>) message.getTexts().getTextsList();
                return texts;
            case OBJECTS:
                Content objects = Content.of("objects");
                message.getObjects().getObjectsList().forEach(item ->
                    objects.objects.add(new Content.Item(item.getId(), item.getName(), item.getPrice())));
                return objects;
            case POINTS:
                Content points = Content.of("points");
                message.getPoints().getPointsList().forEach(one -> points.points.add(new String[] {one.getId(),
                    one.getName(), one.getCategory(), one.getDescription(), one.getAddress(), one.getCity(),
                    one.getCountry(), one.getLatitude(), one.getLongitude(), one.getHours(), one.getPhone(),
                    one.getWebsite(), one.getPicture()}));
                return points;
            default: throw new IllegalArgumentException("no kind of content");
        }
    }
}
